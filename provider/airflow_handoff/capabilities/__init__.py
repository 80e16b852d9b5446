"""What a language SDK claims it can do, checked and rendered.

A claim file (``capabilities.yaml``) is read as a :class:`~airflow_handoff.capabilities.document.Document`,
checked by the rules in ``checks/``, joined with the list of dimensions and the generated evidence into
:class:`~airflow_handoff.capabilities.claims.Claims`, and rendered by ``render/``. Those do without pydantic,
so that a hook starts quickly; :mod:`~airflow_handoff.capabilities.manifest` is the same shape as pydantic
models, for programs and for the published JSON Schema.
"""
