"""Runs last: a client that can say something which no test ever said is a gap in the suite."""

from __future__ import annotations

from harness import Recorder, request_classes


def test_the_server_took_every_request_that_the_client_has_for_these_kinds(recorder: Recorder) -> None:
    """Bodies are counted only once the server has answered them with success."""
    classes = request_classes()
    assert len(classes) == 40, "the client's classes are not where they were looked for"
    missing = sorted(f"{c.__module__.rsplit('.', 1)[1]}.{c.__qualname__}" for c in classes - recorder.taken)
    assert not missing, f"never sent, or never taken: {missing}"
