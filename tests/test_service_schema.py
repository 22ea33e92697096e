"""The service keeps to its OpenAPI description, whatever Schemathesis makes of it."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from service_tools import populate, served

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance,
    response_headers_conformance, response_schema_conformance, unsupported_method,
]  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schema") / "learners"
    with served(folder, "--rate", "0", "--sync", "never") as found:
        yield found


@pytest.fixture
def names(service):
    """A learner of each kind, open, and nothing else."""
    with service.client() as http:
        for state in http.get("/api/learners").json()["learners"]:
            assert http.delete(f"/api/learners/{state['name']}").status_code == 204
        yield populate(http)
        # It is up, and none of its learners is broken.
        assert http.get("/health/ready").json()["damaged"] == []
        listed = http.get("/api/learners").json()["learners"]
        assert {state["status"] for state in listed} == {"open"}
    assert service.bugs() == []


def run(service, operation, mode, names, examples):
    """Send what is made for an operation, right or wrong, and check what is answered."""
    told = []

    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(
        case=operation.as_strategy(generation_mode=mode),
        name=st.sampled_from([*names, *names, None]),
    )
    def send(case, name):
        # Names of learners that are there are never guessed.
        if (
            name is not None
            and "name" in (case.path_parameters or {})
            and case.method != "DELETE"
        ):
            case.path_parameters["name"] = name
        told.append(case.call_and_validate(checks=CHECKS).status_code)

    send()
    return told


@pytest.mark.parametrize("examples", [25, pytest.param(600, marks=pytest.mark.slow)])
def test_whatever_is_made_of_the_description_is_answered_as_it_says(service, names, examples):
    description = schemathesis.openapi.from_url(f"{service.url}/api/openapi.json")
    operations = [found.ok() for found in description.get_all_operations()]
    told = {}
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                found = run(service, operation, mode, names, examples)
            except schemathesis.errors.InvalidSchema:
                raise
            except Exception as error:
                # Of what takes nothing, nothing wrong can be made.
                if type(error).__name__ not in ("Unsatisfiable", "SkipTest"):
                    raise
                found = []
            told.setdefault(operation.label, []).extend(found)
    # All are asked, and some of what was right was done.
    assert len(operations) > 20
    assert all(told.values()), told
    done = [label for label, statuses in told.items() if min(statuses) < 300]
    assert len(done) > 12, told


def test_the_description_is_whole(service):
    with service.client() as http:
        found = http.get("/api/openapi.json").json()
    assert found["openapi"].startswith("3.")
    text = json.dumps(found)
    for path in ("teach", "ask", "teach/image", "ask/image", "forget", "rename", "merge",
    "export",
                 "history", "recoding", "thumbnails/{key}"):  # fmt: skip
        assert f"/api/learners/{{name}}/{path}" in text
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (path, method)
            assert operation["description"], (path, method)
