"""From the arguments of a stub call to the parameters of a function."""

from __future__ import annotations

from airflow_handoff_sdk.errors import BindingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    from airflow_handoff_sdk.context import Context

_CONTEXT = ("ctx", "context")


def parameters(function: Callable[..., Any]) -> tuple[list[str], dict[str, Any], bool]:
    """Return a function's parameter names, its defaults, and whether it takes any keyword."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__self__") or hasattr(function, "__wrapped__"):
        return _slow_parameters(function)
    positional = list(code.co_varnames[: code.co_argcount])
    end = code.co_argcount + code.co_kwonlyargcount
    names = positional + list(code.co_varnames[code.co_argcount : end])
    given = getattr(function, "__defaults__", None) or ()
    defaults = dict(zip(positional[len(positional) - len(given) :], given))
    defaults.update(getattr(function, "__kwdefaults__", None) or {})
    return names, defaults, bool(code.co_flags & 0x08)


def _slow_parameters(function: Callable[..., Any]) -> tuple[list[str], dict[str, Any], bool]:
    import inspect

    found = inspect.signature(function).parameters.values()
    names = [p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    defaults = {p.name: p.default for p in found if p.default is not p.empty}
    return names, defaults, any(p.kind is p.VAR_KEYWORD for p in found)


def folded(name: str) -> str:
    """Return a name as languages compare it: lower case, no underscores."""
    return name.replace("_", "").lower()


def bind(function: Callable[..., Any], context: Context, given: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments to call a function with.

    Each value is converted to the annotation of its parameter.

    :param given: values by the names the Dag uses.
    :raises BindingError: where a value has no parameter, a parameter no value, or the types do not fit.
    """
    names, defaults, open_ended = parameters(function)
    by_fold = {folded(name): name for name in names}
    hints = _hints(function, {by_fold.get(folded(name), name) for name in given}) if given else {}
    found: dict[str, Any] = {}
    for name, value in given.items():
        target = name if name in names else by_fold.get(folded(name), name)
        if target not in names and not open_ended:
            raise BindingError(f"{_label(function)} takes no argument {name!r}; its parameters are {names}")
        found[target] = _converted(target, value, hints)
    for name in _CONTEXT:
        if name in names and name not in found:
            found[name] = context
    missing = [name for name in names if name not in found and name not in defaults]
    if missing:
        raise BindingError(
            f"{_label(function)} needs {missing} and the supervisor sent {sorted(given) or 'no arguments'}: "
            "Airflow 3.3 sends none to stub tasks; give the parameter a default, or pull an XCom"
        )
    return found


def _label(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function)) + "()"


def _hints(function: Callable[..., Any], wanted: set[str]) -> dict[str, Any]:
    """Return the annotations of some parameters; others may name what only a type checker imports."""
    function = getattr(function, "__func__", function)
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    try:
        if not getattr(function, "__annotations__", None):
            return {}
    except NameError:  # Python 3.14 evaluates them only now
        pass
    import typing

    try:
        return typing.get_type_hints(function)
    except Exception:
        texts = _annotations(function)
    found = {}
    for name in wanted & set(texts):
        hint = texts[name]
        try:
            # The author's own annotation, read as typing itself would.
            found[name] = eval(hint, function.__globals__) if isinstance(hint, str) else hint  # noqa: S307
        except Exception as error:
            raise BindingError(
                f"the annotation of {name!r} in {_label(function)} cannot be read: {error}"
            ) from error
    return found


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        found: dict[str, Any] = function.__annotations__
    except NameError:
        import annotationlib  # type: ignore[import-not-found]

        found = annotationlib.get_annotations(function, format=annotationlib.Format.FORWARDREF)
    return found


def _converted(name: str, value: Any, hints: dict[str, Any]) -> Any:
    if name not in hints:
        return value
    from airflow_handoff_sdk.conversion import convert

    try:
        return convert(value, hints[name])
    except (TypeError, ValueError) as error:
        raise BindingError(f"the argument {name!r}: {error}") from error


def bound_arguments(bindings: Iterable[dict[str, Any]], context: Context) -> dict[str, Any]:
    """Return the values of a stub call's arguments by name; those that are XComs are fetched."""
    found = {}
    for binding in bindings:
        if binding.get("kind") == "xcom":
            found[binding["name"]] = context.xcom.pull(
                binding["task_id"], binding.get("key") or "return_value"
            )
        else:
            found[binding["name"]] = binding.get("value")
    return found
