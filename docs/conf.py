"""Sphinx configuration: MyST Markdown, warnings are errors (``make docs``)."""

from __future__ import annotations

import sys

import airflow_handoff
from airflow_handoff.sdk_path import python_sdk_path

# The pages of the Python SDK are made from its docstrings.
sys.path.insert(0, str(python_sdk_path()))

project = "Handoff"
copyright = "the Handoff contributors"
release = version = airflow_handoff.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
autodoc_typehints = "signature"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "Airflow tasks that leave Python and come back.", "page_width": "1100px"}
