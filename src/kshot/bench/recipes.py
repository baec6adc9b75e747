"""What a method computes, in words that a key is made of, and what it looks at."""

from dataclasses import asdict, replace
from inspect import Parameter, signature
from typing import Any

from kshot.bench.study import MethodSpec
from kshot.methods import registry
from kshot.methods.knob import knob_evidence
from kshot.types import Evidence, MethodInfo

# Recipes of records that are no head's: quantities of a stratum or a draw, and the best value of a method's knob.
PROBE, KNOB_ORACLE = "probe:", "knob-oracle:"
PROBE_VERSION = 1
EVERYTHING: frozenset[Evidence] = frozenset({"text", "support", "pool", "test"})


def described(spec: MethodSpec) -> MethodInfo:
    """The `info` of a study's method, of a probe or of a knob's oracle."""
    if spec.use.startswith(PROBE):
        return MethodInfo(spec.use, spec.use, sees=EVERYTHING)
    if spec.use.startswith(KNOB_ORACLE):
        info = described(replace(spec, use=spec.use.removeprefix(KNOB_ORACLE)))
        return replace(
            info, key=spec.use, title=f"{info.title}: its knob's oracle", sees=knob_evidence(info), views=False
        )
    return registry.info(spec.use, spec.params) if spec.head is None else spec.head.info


def recipe(spec: MethodSpec, info: MethodInfo) -> dict[str, Any]:
    """What a method computes under whatever name: class, parameters that differ from the class's defaults, version or
    hash of the code (also of methods that a parameter names), views."""
    if spec.use.startswith(PROBE):
        return {"method": spec.use, "params": spec.params, "version": PROBE_VERSION}
    use = spec.use.removeprefix(KNOB_ORACLE)
    cls = type(spec.head)
    path = registry.path_of(use) if spec.head is None else f"{cls.__module__}:{cls.__qualname__}"
    entry = registry.BUILTIN.get(use, registry.Entry(path))
    params = entry.params | spec.params
    if entry.path.startswith("kshot."):
        known = signature(registry.builtin_class(entry.path)).parameters
        defaults = {name: known[name].default if name in known else Parameter.empty for name in params}
        params = {name: value for name, value in params.items() if value != defaults[name]}
    named = sorted({v for v in params.values() if isinstance(v, str) and v in registry.BUILTIN})
    words = {
        "method": f"{KNOB_ORACLE if use != spec.use else ''}{entry.path}",
        "params": params,
        "version": info.version or 1,
        "code": code_of(spec),
        "uses": {name: registry.info(name).version or 1 for name in named},
        "views": asdict(spec.views) if spec.views and info.views else None,
    }
    return {name: value for name, value in words.items() if value not in ("", {}, None)}


def code_of(spec: MethodSpec) -> str:
    """A hash of the code of a method that is not part of kshot; empty for kshot's own, which have a version."""
    if spec.head is not None:
        return registry.session_code(spec.head)
    return registry.code_of(spec.use.removeprefix(KNOB_ORACLE), spec.params)
