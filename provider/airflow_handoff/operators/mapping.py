"""What is known of the instances of a mapped request when the Dag is parsed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice, product
from typing import Any

UNKNOWN = object()
#: More instances than that are not looked at.
MOST = 1_000


def known_instances(
    given: Mapping[str, Any], mapped: Any, names: Collection[str], *, final: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the arguments of each mapped instance; those that only a run will know are ``UNKNOWN``.

    :param given: the arguments of ``partial``.
    :param mapped: those of ``expand``, by name, or what ``expand_kwargs`` takes.
    :param names: the arguments that matter; instances that differ in others only are yielded once.
    :param final: whether what is mapped cannot replace what was given.
    """
    if isinstance(mapped, Mapping):
        rest = {**given, **dict.fromkeys(mapped, UNKNOWN)}
        lists = {n: v for n, v in mapped.items() if n in names and isinstance(v, (list, tuple))}
        for values in islice(product(*lists.values()), MOST):
            yield {**rest, **dict(zip(lists, values, strict=True))}
    elif isinstance(mapped, (list, tuple)):
        yield from ({**given, **item} for item in mapped[:MOST] if isinstance(item, Mapping))
    elif final:
        yield dict(given)
