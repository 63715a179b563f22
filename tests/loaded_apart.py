"""What names of documents, topics and judgements hold, loaded in a process of its own with variables of its own."""

import json
import os
import subprocess
import sys

LOADS = """
import json, sys
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics
said = {}
for name in sys.argv[1:]:
    kind, _, name = name.partition(" ")
    if kind == "documents":
        said[name] = [[one.docid, one.text] for one in load_documents(name)]
    elif kind == "topics":
        said[kind + " " + name] = load_topics(name)
    elif kind == "qrels":
        said[kind + " " + name] = [[q, d, int(g)] for q, d, g in load_qrels(name).itertuples(index=False)]
    elif kind == "stored":
        from rnnreranker.data.passage_documents import documents_by
        ids = [one.docid for one in load_documents(name)]
        said[kind + " " + name] = dict(zip(ids, documents_by(name, ids)[0].tolist()))
    else:
        import ir_datasets
        said[kind + " " + name] = [list(one) for one in getattr(ir_datasets.load(name), kind)()]
print(json.dumps(said))
"""


def loaded(variables, *asked):
    done = subprocess.run(
        [sys.executable, "-c", LOADS, *asked],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])
