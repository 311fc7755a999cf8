"""The process that compiles for `memhouse fit`: run as a script, it imports nothing of memhouse.

It is called with a file or module, the name of the function in it, the topology, and the numbers of
two pipes. Each request is a line of JSON, and so is each answer:

    -> {"arguments": {"batch": 64}}      <- {"content": …, "module": …, "devices": …, "flops": …},
       also "donated": ["params"], to          or {"failed": …}; flops: over all devices, of the
       donate these arguments as well          program as it is written, null if they are not known
    -> {"options": {"xla_dump_to": …}}   <- {"seconds": …}, with "refused": … if memory ran out

The second request is left out where the program is known by its content.
"""

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from math import prod
from pathlib import Path
from typing import Any

# A GPU is described by a file, as XLA dumps it beside its programs.
TARGET_SUFFIX = ".pbtxt"
_VERSIONS = ("jax", "jaxlib", "libtpu", "jax-cuda12-pjrt", "jax-cuda13-pjrt")
_LOOK_SECONDS = 1.0


class _WrongError(Exception):
    """What the user's function did wrong, in a line."""


def main(target: str, name: str, topology: str, requests: int, answers: int) -> None:
    """Answer each request until the pipe of requests is closed."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with os.fdopen(requests) as lines, os.fdopen(answers, "w", buffering=1) as out:

        def answer(**said: object) -> None:
            out.write(json.dumps(said) + "\n")

        try:
            build = _imported(target, name)
            devices, versions = _devices(topology)
        except BaseException as error:
            answer(failed=_told(error, target))
            return
        answer(versions=versions)
        lowered: Any = None
        for line in lines:
            request = json.loads(line)
            try:
                if "options" in request:
                    answer(**_compiled(lowered, request["options"]))
                    continue
                donated = request.get("donated", ())
                lowered, flops = _lowered(build, devices, request["arguments"], donated)
                answer(**_identified(lowered, topology, versions), flops=flops)
            except BaseException as error:
                answer(failed=_told(error, target))


def _end_with(parent: int) -> None:
    """End this process with memhouse's, also if that is killed while a program is compiled."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def _imported(target: str, name: str) -> Any:
    """The function in a file, as if the file were run as a script, or in a module."""
    path = Path(target)
    if path.suffix == ".py":
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None or not path.is_file():
            raise _WrongError(f"there is no file {target}")
        module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        module = importlib.import_module(target)
    build = getattr(module, name, None)
    if build is None:
        raise _WrongError(f"it has no {name}")
    if not callable(build):
        raise _WrongError(f"{name} is no function")
    return build


def _devices(topology: str) -> tuple[list[Any], dict[str, str]]:
    """The devices to compile for, and the versions that compile."""
    import jax

    versions = {}
    for package in _VERSIONS:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    if topology.partition(":")[0] == "cpu":
        return list(jax.devices("cpu")), versions
    from jax.experimental import topologies

    if topology.endswith(TARGET_SUFFIX):
        try:
            found = topologies.get_topology_desc(
                Path(topology).stem,
                platform="cuda",
                target_config=Path(topology).read_text(encoding="utf-8"),
                topology="1x1x1",
            )
        except Exception as error:
            raise _WrongError(
                f"for GPUs it needs jax[cuda12] or jax-cuda12-pjrt: {_first_line(error)}"
            ) from None
        return list(found.devices), versions
    if "libtpu" not in versions:
        raise _WrongError("libtpu is not installed: with it any machine compiles for TPUs")
    try:
        found = topologies.get_topology_desc(platform="tpu", topology_name=topology)
    except Exception as error:
        raise _WrongError(f"libtpu knows no topology {topology!r}: {_first_line(error)}") from None
    return list(found.devices), versions


def _lowered(
    build: Any, devices: list[Any], arguments: dict[str, Any], donated: Sequence[str]
) -> tuple[Any, int | None]:
    """The program that the user's function builds, lowered for the devices, and its FLOPs.

    donated: the names of arguments that are donated beside those that the user donates.
    """
    import jax

    takes = inspect.signature(build).parameters
    built = build(devices, **arguments) if "devices" in takes else build(**arguments)
    # Flax NNX and Equinox wrap the lowered program of JAX.
    lowered = getattr(built, "lowered", built)
    if hasattr(lowered, "compile") and hasattr(lowered, "compiler_ir"):
        if donated:
            raise _WrongError("it returned a lowered program, in which no more can be donated")
        _require_platform(lowered, devices[0].platform)
        return lowered, None
    wanted = "return a jitted function and the tuple of its arguments: return jax.jit(step), (x,)"
    if not isinstance(built, tuple) or len(built) != 2:
        raise _WrongError(f"it returned {_kind(built)}: {wanted}")
    given, args = built
    if not isinstance(args, tuple | list):
        raise _WrongError(f"the arguments that it returned are {_kind(args)}: {wanted}")
    jitted, args = _unbound(given, tuple(args))
    if not hasattr(jitted, "lower"):
        raise _WrongError(f"it returned {_kind(given)}, which is not jitted: {wanted}")
    leaves = jax.tree.leaves(args)
    if not any(_is_placed(leaf) for leaf in leaves):
        alone = jax.sharding.SingleDeviceSharding(devices[0])
        args = jax.tree.map(lambda leaf: _shape(leaf, alone), args)
    if _is_of_equinox(jitted):
        jitted, args = _of_arrays(jitted, args)
    if donated:
        jitted = _donating(jitted, jitted.lower(*args), args, donated)
    if not hasattr(jitted, "trace"):
        lowered = jitted.lower(*args)
        return getattr(lowered, "lowered", lowered), None
    traced = jitted.trace(*args)
    traced = getattr(traced, "traced", traced)
    flops = None
    # A JAX that names things otherwise compiles all the same.
    with contextlib.suppress(AttributeError, KeyError, TypeError):
        flops = _flops(traced.jaxpr.jaxpr)
    return traced.lower(), flops


def _require_platform(lowered: Any, platform: str) -> None:
    """Refuse a program that was lowered for another platform than the topology's."""
    # JAX has no public name for it; without it the compiler of the other platform is used.
    platforms = getattr(getattr(lowered, "_lowering", None), "_platforms", None)
    if platforms and platform not in platforms:
        raise _WrongError(
            f"it returned a program lowered for {', '.join(platforms)}, not for {platform}: return"
            " jax.jit(step), (x,), or lower with arguments that have a sharding over `devices`"
        )


def _unbound(function: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The function and arguments of a partial, Python's or Equinox's, or of a bound method."""
    while True:
        if inspect.ismethod(function):
            function, args = function.__func__, (function.__self__, *args)
        elif hasattr(function, "func") and not getattr(function, "keywords", True):
            function, args = function.func, (*function.args, *args)
        else:
            return function, args


def _is_of_equinox(jitted: Any) -> bool:
    return type(jitted).__module__.partition(".")[0] == "equinox"


def _of_arrays(jitted: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """A function of JAX around Equinox's, and its arguments without the leaves that are no arrays.

    `eqx.filter_jit` takes a jax.ShapeDtypeStruct for a constant, but not what JAX traces of it.
    """
    import jax

    def arrays_of(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf if _is_array(leaf) else None, tree)

    @functools.wraps(jitted)
    def around(*arrays: Any) -> Any:
        all_args = jax.tree.map(
            lambda array, leaf: leaf if array is None else array,
            arrays,
            args,
            is_leaf=lambda leaf: leaf is None,
        )
        return arrays_of(jitted(*all_args))

    # donate="all" and donate="all-except-first"
    first, rest = (getattr(jitted, f"donate_{which}", False) for which in ("first", "rest"))
    donated = [index for index in range(len(args)) if (rest if index else first)]
    return jax.jit(around, donate_argnums=donated), arrays_of(args)


def _donating(jitted: Any, lowered: Any, args: Sequence[Any], donated: Sequence[str]) -> Any:
    """The jitted function around itself, which donates more of its arguments."""
    import jax

    parameters = list(inspect.signature(jitted).parameters.values())
    names = []
    for number in range(len(args)):
        parameter = parameters[min(number, len(parameters) - 1)]
        is_rest = parameter.kind is parameter.VAR_POSITIONAL
        names.append(
            f"{parameter.name}[{number - len(parameters) + 1}]" if is_rest else parameter.name
        )
    unknown = [name for name in donated if name not in names]
    if unknown:
        raise _WrongError(f"its arguments are {', '.join(names)}, and not {', '.join(unknown)}")
    static = [
        number
        for number, arg in enumerate(args)
        if not all(
            hasattr(leaf, "shape") or isinstance(leaf, float | int) for leaf in jax.tree.leaves(arg)
        )
    ]
    traced = [number for number in range(len(args)) if number not in static]
    given = dict(zip(traced, lowered.args_info[0], strict=False))
    chosen = [
        number
        for number in traced
        if names[number] in donated
        or any(leaf.donated for leaf in jax.tree.leaves(given.get(number), is_leaf=_is_info))
    ]

    @functools.wraps(jitted)
    def around(*args: Any) -> Any:
        return jitted(*args)

    return jax.jit(around, donate_argnums=chosen, static_argnums=static)


def _is_info(leaf: Any) -> bool:
    return hasattr(leaf, "donated")


def _is_placed(leaf: Any) -> bool:
    """Whether the user says on which devices an array is."""
    import jax

    return isinstance(leaf, jax.ShapeDtypeStruct) and leaf.sharding is not None


def _shape(leaf: Any, sharding: Any) -> Any:
    """What stands for an array on a device that is not there."""
    import jax

    if not _is_array(leaf):
        return leaf
    weak = bool(getattr(leaf, "weak_type", False))
    struct: Any = jax.ShapeDtypeStruct
    return struct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=weak)


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _flops(jaxpr: Any) -> int | None:
    """The FLOPs of the dots and convolutions; None if some are done nobody knows how often."""
    total = 0
    for eqn in jaxpr.eqns:
        name, params = eqn.primitive.name, eqn.params
        if name == "dot_general":
            (contracted, _), _ = params["dimension_numbers"]
            left = eqn.invars[0].aval.shape
            total += 2 * prod(eqn.outvars[0].aval.shape) * prod(left[i] for i in contracted)
        elif name == "conv_general_dilated":
            total += _conv_flops(eqn)
        within = 0
        for value in params.values():
            for each in value if isinstance(value, list | tuple) else [value]:
                inner = getattr(each, "jaxpr", each)
                if hasattr(inner, "eqns"):
                    flops = _flops(inner)
                    if flops is None:
                        return None
                    within += flops
        if within and name in ("while", "cond", "pallas_call"):
            return None
        if name == "shard_map":
            # JAX 0.9 and older say it otherwise.
            axes = params.get("newly_manual_axes") or params["manual_axes"]
            within *= prod(params["mesh"].shape[axis] for axis in axes)
        total += within * (params["length"] if name == "scan" else 1)
    return total


def _conv_flops(eqn: Any) -> int:
    """The FLOPs of a convolution: where its window meets an element, and no padding or hole."""
    params, numbers = eqn.params, eqn.params["dimension_numbers"]
    left, right = (v.aval.shape for v in eqn.invars)
    out = eqn.outvars[0].aval.shape
    met: int = 2 * out[numbers.out_spec[0]] * out[numbers.out_spec[1]] * right[numbers.rhs_spec[1]]
    for axis in range(len(params["padding"])):
        size, hole = left[numbers.lhs_spec[2 + axis]], params["lhs_dilation"][axis]
        at = [
            place * params["window_strides"][axis]
            + tap * params["rhs_dilation"][axis]
            - params["padding"][axis][0]
            for place in range(out[numbers.out_spec[2 + axis]])
            for tap in range(right[numbers.rhs_spec[2 + axis]])
        ]
        met *= sum(each % hole == 0 and 0 <= each <= (size - 1) * hole for each in at)
    return met


def _identified(lowered: Any, topology: str, versions: dict[str, str]) -> dict[str, Any]:
    """The program's name and devices, and a hash of all that decides what is compiled of it."""
    flags = [os.environ.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")]
    target = (
        Path(topology).read_text(encoding="utf-8") if topology.endswith(TARGET_SUFFIX) else topology
    )
    whole = json.dumps([target, sorted(versions.items()), flags, lowered.as_text()])
    attributes = lowered.compiler_ir().operation.attributes
    counts = [attributes[f"mhlo.num_{of}"].value for of in ("partitions", "replicas")]
    return {
        "content": hashlib.sha256(whole.encode()).hexdigest()[:16],
        "module": str(attributes["sym_name"].value),
        "devices": prod(counts),
    }


def _compiled(lowered: Any, options: dict[str, Any]) -> dict[str, object]:
    """Compile, which dumps; how long it took, and what XLA says if memory ran out."""
    begun = time.perf_counter()
    refused = None
    try:
        lowered.compile(compiler_options=options)
    except Exception as error:
        text = str(error)
        if "RESOURCE_EXHAUSTED" not in text and "Ran out of memory" not in text:
            raise
        refused = text
    return {"seconds": time.perf_counter() - begun, "refused": refused}


def _told(error: BaseException, target: str) -> str:
    """An error in a line, with the innermost line of the user's own file."""
    if isinstance(error, _WrongError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == target]
    where = f" ({Path(target).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {_first_line(error)}{where}"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else "it says nothing"


def _kind(given: object) -> str:
    return "None" if given is None else f"an object of type {type(given).__name__}"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
