"""What scikit-learn expects of an estimator around fitting and predicting: parameters, tags, routing.

Written by hand instead of inheriting `BaseEstimator`: importing scikit-learn takes about five times as long as
`kshot --help` altogether and longer than most of these heads take to fit, and every command and worker would pay for
it. It is imported where only its users arrive.
"""

from typing import Any, TypeVar

from kshot.errors import InputError
from kshot.methods.parameters import parameter_names

E = TypeVar("E", bound="Estimator")

# What `fit` takes beside X and y; a meta-estimator hands it on without being told.
ROUTED = (
    "text",
    "classes",
    "views",
    "pool",
    "validation",
    "few_shot_validation",
    "test",
    "queries",
)


class Estimator:
    """Parameters that can be read, set, shown and cloned; tags; metadata routing."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in parameter_names(type(self))}

    def set_params(self: E, **params: Any) -> E:
        allowed = parameter_names(type(self))
        for name, value in params.items():
            if name not in allowed:
                raise InputError(
                    f"{type(self).__name__} has no parameter '{name}'; it has {', '.join(allowed) or 'none'}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({shown})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
        )

    def get_metadata_routing(self) -> Any:
        """scikit-learn's `MetadataRequest`: all that `fit` takes is requested unless `set_fit_request` says no."""
        from sklearn.utils.metadata_routing import MetadataRequest

        if hasattr(self, "_metadata_request"):
            return self._metadata_request
        request = MetadataRequest(owner=self)
        for name in ROUTED:
            request.fit.add_request(param=name, alias=True)
        return request

    def set_fit_request(self: E, **wanted: bool | str | None) -> E:
        """For each argument of `fit`: True, False, None (refuse it) or the name under which it arrives."""
        request = self.get_metadata_routing()
        for name, alias in wanted.items():
            if name not in ROUTED:
                raise InputError(f"fit takes no '{name}' that could be routed; it takes {', '.join(ROUTED)}.")
            request.fit.add_request(param=name, alias=alias)
        # scikit-learn's clone copies an attribute of this name.
        self._metadata_request = request
        return self
