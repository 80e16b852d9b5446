"""What a runtime sees of its host's environment."""

from airflow_handoff.process import allowed_environment

HOST = {
    "PATH": "/bin",
    "HOME": "/home/ada",
    "LC_ALL": "C.UTF-8",
    "https_proxy": "http://proxy.example",
    "TRACEPARENT": "00-1-2-01",
    "AIRFLOW__API_AUTH__JWT_SECRET": "s3cret",
    "AIRFLOW__CORE__FERNET_KEY": "k3y",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql://ada:pw@db/airflow",
    "AWS_REGION": "eu-central-1",
    "AWS_PROFILE": "ada",
}


def test_only_the_allow_list_passes() -> None:
    """Secrets of the host stay behind and are named."""
    chosen = allowed_environment(HOST)
    assert set(chosen.values) == {"PATH", "HOME", "LC_ALL", "https_proxy", "TRACEPARENT"}
    assert chosen.withheld == (
        "AIRFLOW__API_AUTH__JWT_SECRET",
        "AIRFLOW__CORE__FERNET_KEY",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
        "AWS_PROFILE",
        "AWS_REGION",
    )


def test_patterns_pass_more() -> None:
    """A pattern of the coordinator passes what it matches, case-sensitively."""
    chosen = allowed_environment(HOST, pass_env=["AWS_*"])
    assert chosen.values["AWS_REGION"] == "eu-central-1"
    assert "AWS_REGION" in allowed_environment(HOST, pass_env=["aws_*"]).withheld


def test_set_values_win() -> None:
    """A value that the coordinator sets replaces the host's and is not called withheld."""
    chosen = allowed_environment(HOST, env={"PATH": "/opt/bin", "AWS_REGION": "x"})
    assert chosen.values["PATH"] == "/opt/bin"
    assert "AWS_REGION" not in chosen.withheld
