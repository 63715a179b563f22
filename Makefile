# `make demo` and `make test` start from a bare clone: they make the environment they need.
PYTHON ?= python3
VENV ?= .venv
# --no-compile: Python compiles what it imports, once, which halves the time that the installation takes; so it must
# be allowed to keep what it compiled
unexport PYTHONDONTWRITEBYTECODE
PIP = $(VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt
INPUTS = setup.cfg pyproject.toml constraints.txt

.PHONY: demo test test-slow lint docs clean

demo: $(VENV)/demo.stamp
	$(VENV)/bin/python -m rnnreranker.regress pydoc --only bm25-rnn --only dense-rnn --only hybrid-rnn

test: $(VENV)/dev.stamp
	$(VENV)/bin/python -m pytest -n logical --dist worksteal -m 'not slow'

test-slow: $(VENV)/dev.stamp
	$(VENV)/bin/python -m pytest -n logical --dist worksteal -m slow

lint: $(VENV)/dev.stamp
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

docs: $(VENV)/dev.stamp
	$(VENV)/bin/python -m rnnreranker.regress --docs

# torch first and alone: with it in place nothing else pulls another build of it
$(VENV)/torch.stamp:
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch $(TORCH_FLAGS)
	touch $@

$(VENV)/demo.stamp: $(VENV)/torch.stamp $(INPUTS)
	$(PIP) --editable '.[demo]'
	touch $@

$(VENV)/dev.stamp: $(VENV)/torch.stamp $(INPUTS)
	$(PIP) --editable '.[demo,train,tune,plots,cluster,dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
