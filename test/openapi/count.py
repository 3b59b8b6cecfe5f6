"""Counts the replies in a report of schemathesis (ndjson): by operation and status, and what failed of the checks."""

import json
import sys
from collections import Counter, defaultdict

statuses = defaultdict(Counter)
failed = Counter()
with open(sys.argv[1], encoding="utf-8") as report:
    for line in report:
        scenario = json.loads(line).get("ScenarioFinished")
        if scenario is None:
            continue
        recorder = scenario["recorder"]
        for interaction in recorder.get("interactions", {}).values():
            reply = interaction.get("response")
            statuses[recorder["label"]][reply["status_code"] if reply else "no reply"] += 1
        for checks in recorder.get("checks", {}).values():
            failed.update(check["name"] for check in checks if check["status"] == "failure")

for label, counts in sorted(statuses.items()):
    print(f"{label:36}", "  ".join(f"{status}: {count}" for status, count in sorted(counts.items(), key=str)))
total = sum(statuses.values(), Counter())
errors = sum(count for status, count in total.items() if isinstance(status, int) and status >= 500 and status != 501)
print(
    f"{total.total()} requests, 5xx besides 501: {errors}, without a reply: {total['no reply']}, "
    f"undocumented: {failed['status_code_conformance'] + failed['content_type_conformance']}, failed checks: {dict(failed)}"
)
