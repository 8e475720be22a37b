"""What the server logs, and what it never does."""

import asyncio
import io
import json
import logging
import sys

import pytest

from leasehold.server.logs import FIELDS, JsonLines, RequestLog, without_secrets

KEY = "lh_1271cf258f8fabf6964001a7_c21dfa2a3e2909d9d55456be77ba5f5d0277ca7c8cfd0ca8f0c615e0b4eadf6c"


@pytest.mark.parametrize(
    "text", [KEY, f"Bearer {KEY}", f"/{KEY}/x", f'{{"a":"{KEY}"}}', f"{KEY},{KEY}", f"GET /?k={KEY}&b=1"]
)
def test_the_secret_of_a_key_is_left_out_wherever_it_is(text: str) -> None:
    shown = without_secrets(text)

    assert KEY.rpartition("_")[2] not in shown
    assert "lh_1271cf258f8fabf6964001a7_…" in shown


def test_a_record_is_one_line_of_json_with_its_fields_and_traceback() -> None:
    try:
        raise ValueError(f"nobody should see {KEY}")
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, __file__, 1, "bad\nnews %s", (KEY,), sys.exc_info())
    setattr(record, FIELDS, {"request_id": "r1"})

    line = JsonLines().format(record)

    told = json.loads(line)
    assert "\n" not in line
    assert (told["level"], told["request_id"]) == ("error", "r1")
    assert "ValueError" in told["traceback"]
    assert KEY not in line


def test_requests_are_written_together_and_none_is_lost() -> None:
    stream = io.StringIO()

    async def note() -> None:
        log = RequestLog(stream)
        for number in range(100):
            log.note({"path": f"/{KEY}", "number": number})
        assert stream.getvalue() == ""
        log.flush()

    asyncio.run(note())

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["number"] for line in lines] == list(range(100))
    assert {line["message"] for line in lines} == {"request"}
    assert KEY not in stream.getvalue()
