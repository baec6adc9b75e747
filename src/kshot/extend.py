"""All names for a method or a metric of your own; see docs/add-a-method.md."""

from kshot.methods.base import Classifier as Classifier
from kshot.methods.base import info_by_parameters as info_by_parameters
from kshot.methods.blending import RatioKnob as RatioKnob
from kshot.methods.blending import blend as blend
from kshot.methods.evidence import Task as Task
from kshot.methods.evidence import average_view as average_view
from kshot.methods.evidence import every_view as every_view
from kshot.methods.knob import Knob as Knob
from kshot.methods.knob import KnobWithLeaveOneOut as KnobWithLeaveOneOut
from kshot.methods.parameters import AnchorScale as AnchorScale
from kshot.methods.parameters import Count as Count
from kshot.methods.parameters import LogitScale as LogitScale
from kshot.methods.parameters import NotNegative as NotNegative
from kshot.methods.parameters import Positive as Positive
from kshot.methods.parameters import Range as Range
from kshot.methods.parameters import Seed as Seed
from kshot.methods.parameters import Share as Share
from kshot.stats.answers import Answers as Answers
from kshot.stats.metrics import Metric as Metric
from kshot.stats.selected import RATIO as RATIO
from kshot.stats.selected import curve_name as curve_name
from kshot.types import FREE_EVIDENCE as FREE_EVIDENCE
from kshot.types import Choice as Choice
from kshot.types import Labelled as Labelled
from kshot.types import MethodInfo as MethodInfo
