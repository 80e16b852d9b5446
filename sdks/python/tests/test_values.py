"""The pure parts: JSON checks, conversions, bindings, thresholds."""

from __future__ import annotations

import enum
import typing
import unittest
import uuid
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from airflow_handoff_sdk import NotJsonSafe, SdkError, current_context, task
from airflow_handoff_sdk.binding import folded, parameters
from airflow_handoff_sdk.conversion import convert
from airflow_handoff_sdk.jsonsafe import check, revive
from airflow_handoff_sdk.logs import level_name, thresholds
from airflow_handoff_sdk.outcomes import iso_duration, iso_moment


class Colour(enum.Enum):
    """A choice."""

    RED = "red"


class Json(unittest.TestCase):
    """What Airflow accepts."""

    def test_values_that_are_json_pass(self):
        """JSON values are returned as they are."""
        value = {"a": [1, 2.5, None, True, "x", {"b": ()}]}
        self.assertIs(check(value), value)

    def test_values_that_are_not_are_named(self):
        """The message names the place and the type of what is not JSON."""
        cases = {
            "$.a[1]": {"a": [1, b"x"]},
            "$": {1: 2},
            "$[0]": [float("nan")],
            "$.when": {"when": datetime(2026, 1, 1)},
            "$.big": {"big": 2**64},
        }
        for path, value in cases.items():
            with self.assertRaises(NotJsonSafe) as caught:
                check(value)
            self.assertEqual(caught.exception.path, path)

    def test_airflows_own_values_are_restored(self):
        """Moments, tuples and sets of Airflow's serialization come back; strangers stay mappings."""

        def wrapped(name, data):
            return {"__classname__": name, "__version__": 1, "__data__": data}

        moment = wrapped("datetime.datetime", {"timestamp": 0.5, "tz": None})
        stranger = wrapped("a.B", {"x": 1})
        value = {
            "t": wrapped("builtins.tuple", [1, moment]),
            "s": wrapped("builtins.set", [1]),
            "o": stranger,
        }
        epoch = datetime(1970, 1, 1, 0, 0, 0, 500000, tzinfo=timezone.utc)
        self.assertEqual(revive(value), {"t": (1, epoch), "s": {1}, "o": stranger})


class Conversion(unittest.TestCase):
    """JSON values as annotated types."""

    def test_types(self):
        """Every type that is promised is made from its JSON form."""
        key = uuid.UUID(int=5)
        cases = [
            ("2026-01-02T03:04:05Z", datetime, datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)),
            ("2026-01-02", date, date(2026, 1, 2)),
            (90, timedelta, timedelta(seconds=90)),
            ("1.50", Decimal, Decimal("1.50")),
            (str(key), uuid.UUID, key),
            ("red", Colour, Colour.RED),
            (2, float, 2.0),
            (2.0, int, 2),
            ([1, "2"], typing.Tuple[int, str], (1, "2")),
            ({"a": ["red"]}, typing.Dict[str, typing.List[Colour]], {"a": [Colour.RED]}),
            (None, typing.Optional[int], None),
            ("x", typing.Union[int, str], "x"),
            ([1], typing.Sequence[int], [1]),
            ([1, 1], typing.Set[int], {1}),
            ("a", typing.Any, "a"),
        ]
        for value, hint, wanted in cases:
            self.assertEqual(convert(value, hint), wanted, hint)

    def test_values_of_another_type(self):
        """A value of the wrong type is refused, a bool for an int among them."""
        for value, hint in (
            ("5", int),
            (True, int),
            (5, str),
            (1.5, int),
            ("x", typing.List[int]),
            (1, bool),
        ):
            with self.assertRaises(TypeError):
                convert(value, hint)


class Names(unittest.TestCase):
    """Parameters and the registry."""

    def test_parameters(self):
        """Names, defaults and open ends are read without inspect."""

        def function(a, b=2, *args, c, d=4, **rest):
            local = a
            return local

        self.assertEqual(parameters(function), (["a", "b", "c", "d"], {"b": 2, "d": 4}, True))
        self.assertEqual(folded("from_Date"), "fromdate")

    def test_one_function_for_each_task(self):
        """A second function for a task is refused; the decorated function can still be called."""

        @task("names", "once")
        def once(x):
            return x + 1

        self.assertEqual(once(1), 2)
        with self.assertRaises(ValueError):
            task("names", "once")(once)

    def test_no_context_outside_a_task(self):
        """Asking for the context outside a task says so."""
        with self.assertRaises(SdkError):
            current_context()


class Text(unittest.TestCase):
    """Durations, moments, levels."""

    def test_durations(self):
        """Durations are ISO 8601 text."""
        self.assertEqual(
            [iso_duration(d) for d in (5, 2.5, timedelta(minutes=1))], ["PT5S", "PT2.5S", "PT60S"]
        )

    def test_moments_have_a_zone(self):
        """A moment without a zone is refused."""
        with self.assertRaises(ValueError):
            iso_moment(datetime(2026, 1, 1))

    def test_levels(self):
        """Numbers become the nearest level below; settings that say nothing are ignored."""
        self.assertEqual([level_name(n) for n in (5, 10, 25, 35, 50, 99)],
                         ["debug", "debug", "info", "warning", "critical", "critical"])  # fmt: skip
        env = {
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "bogus",
            "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "a.b=WARN,\n c=10 d",
        }
        self.assertEqual(thresholds(env), (20, {"a.b": 30, "c": 10}))


if __name__ == "__main__":
    unittest.main()
