"""The errors a user can cause, each saying what was given, what is allowed and what to type next."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from types import ModuleType

# What a name must not do to a terminal: with `text.translate` control codes are shown, not obeyed.
SHOW_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0))}


class KshotError(Exception):
    """A mistake in the input or the surroundings; the command line prints it and exits with code 2."""


class InputError(KshotError, ValueError):
    """Arrays or labels that no method can use."""


class HeadError(InputError):
    """A head whose class lacks what every fit needs."""


class EvidenceError(KshotError):
    """A method reached for data that it did not declare."""


class UndefinedError(KshotError, ValueError):
    """The method does not exist at this number of shots; recorded as undefined, never as failed."""


class StudyError(KshotError):
    """A study file, or a records folder that does not belong to it."""


class FeatureError(KshotError):
    """A feature file that is missing, damaged or not what its manifest says."""


def not_fitted(name: str) -> InputError:
    """The error for a head that was asked before it was fitted; scikit-learn's NotFittedError as well."""
    return _not_fitted_class()(f"this {name} is not fitted yet; call fit first.")


@cache
def _not_fitted_class() -> type[InputError]:
    from sklearn.exceptions import NotFittedError

    return type("NotFittedError", (InputError, NotFittedError), {})


def unknown(kind: str, given: str, allowed: Iterable[str], next_step: str) -> str:
    """The sentence for a name that does not exist, with the nearest names that do."""
    names = sorted(set(allowed))
    same = [name for name in names if name.casefold() == given.casefold()]
    near = same or get_close_matches(given, names, n=3, cutoff=0.5)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"unknown {kind} '{given}'.{meant} Known: {', '.join(names) or 'none'}. {next_step}"


def one_line(error: Exception) -> str:
    """The error's class and message without line breaks."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def first_line(error: Exception) -> str:
    """The first line of the error's message, at most 300 letters; the error's class if it has none."""
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__


def need(module: str, extra: str) -> ModuleType:
    """Import an optional package at the moment it is needed, or say which command installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name and not module.startswith(error.name):
            raise
        raise missing_extra(module, extra) from None


def missing_extra(package: str, extra: str) -> KshotError:
    """The error for an optional package that is not installed, with the command that installs it."""
    return KshotError(f"this needs {package}, which is not installed. Type: pip install 'kshot[{extra}]'")
