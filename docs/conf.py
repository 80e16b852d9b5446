"""Sphinx configuration: MyST Markdown, warnings are errors (``make docs``)."""

from __future__ import annotations

import airflow_handoff

project = "Handoff"
copyright = "the Handoff contributors"
release = version = airflow_handoff.__version__
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "Airflow tasks that leave Python and come back.", "page_width": "1100px"}
