"""A file that cannot be loaded."""

import not_a_module_of_anybody  # noqa: F401
