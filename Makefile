# `make demo` and `make test` start from a bare clone: they make the environment they need.
PYTHON ?= python3
VENV ?= .venv
# --no-compile: Python compiles what it imports, once, which halves the time that the installation takes; so it must
# be allowed to keep what it compiled
unexport PYTHONDONTWRITEBYTECODE
PIP = $(VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt
# uv installs the other packages in a third of pip's time. It reads none of pip's settings: PIP_OF passes those of
# sources on. Where uv is not available or fails, pip installs.
PIP_OF = $$($(VENV)/bin/python -m pip config get global.$(1) 2>/dev/null || true)
UV = UV_INDEX_URL="$${PIP_INDEX_URL:-$(call PIP_OF,index-url)}" \
  UV_EXTRA_INDEX_URL="$${PIP_EXTRA_INDEX_URL:-$(call PIP_OF,extra-index-url)}" \
  UV_FIND_LINKS="$${PIP_FIND_LINKS:-$(call PIP_OF,find-links)}" \
  $(VENV)/bin/python -m uv pip install --quiet --python $(VENV)/bin/python --system-certs \
    --index-strategy unsafe-best-match --constraint constraints.txt
# PyPI's torch for Linux brings CUDA, some gigabytes: where there is no NVIDIA GPU, and nobody asks for another by
# TORCH_FLAGS, the build for processors is tried first; where it cannot be had, PyPI's does as well
CPU_TORCH ?= --index-url https://download.pytorch.org/whl/cpu
INPUTS = setup.cfg pyproject.toml constraints.txt
DEV = demo,train,tune,plots,terms,zh,cluster,integrations,docs,dev

.PHONY: demo test test-long test-slow lint docs notebooks site clean

demo: $(VENV)/demo.stamp
	$(VENV)/bin/python -m rnnreranker.experiment --index pydoc --topics pydoc --qrels pydoc --protocol dl
	@echo; echo "One question of these, and how far rNN moved what BM25 and MiniLM gave for it:"
	$(VENV)/bin/python -m rnnreranker.search --index pydoc --show 6 \
	  --query "draw several different winners from a list of participants" --explain query --explain-output demo.html
	@echo "demo.html says why: open it in a browser"

test: $(VENV)/dev.stamp
	$(VENV)/bin/python -m pytest -n logical --dist worksteal -m 'not slow and not long'

# what takes more than a few seconds: with `test`, what is run before a change is taken
test-long: $(VENV)/dev.stamp
	$(VENV)/bin/python -m pytest tests -o addopts=-q -n logical --dist worksteal -m 'long and not slow'

test-slow: $(VENV)/dev.stamp
	$(VENV)/bin/python -m pytest tests -o addopts=-q -n logical --dist worksteal -m slow

lint: $(VENV)/dev.stamp
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

docs: $(VENV)/dev.stamp
	$(VENV)/bin/python -m rnnreranker.regress --docs

# executes docs/notebooks/ in place: after a change of what they show, and of the built-in collection
notebooks: $(VENV)/dev.stamp
	$(VENV)/bin/python docs/notebooks/run_notebooks.py

# open site/index.html in a browser; what Sphinx keeps between two builds stands in build/
site: $(VENV)/dev.stamp
	$(VENV)/bin/python -m sphinx -W --keep-going -q -j auto -d build/doctrees docs site

# torch first and alone: with it in place nothing else pulls another build of it
$(VENV)/torch.stamp:
	$(PYTHON) -m venv $(VENV)
	if [ -z "$(TORCH_FLAGS)" ] && [ "$$(uname -s)" = Linux ] && ! command -v nvidia-smi >/dev/null; then \
	  $(PIP) --no-deps --retries 0 --timeout 20 torch $(CPU_TORCH) 2>/dev/null \
	    || echo "PyTorch's build for processors cannot be had from here: taking PyPI's, which may be gigabytes larger"; \
	fi
	$(PIP) torch $(TORCH_FLAGS)
	$(PIP) uv || echo "uv cannot be installed: pip takes its place"
	touch $@

$(VENV)/demo.stamp: $(VENV)/torch.stamp $(INPUTS)
	@$(UV) --editable '.[demo]' || $(PIP) --editable '.[demo]'
	touch $@

$(VENV)/dev.stamp: $(VENV)/torch.stamp $(INPUTS)
	@$(UV) --editable '.[$(DEV)]' || $(PIP) --editable '.[$(DEV)]'
	touch $@

clean:
	rm -rf $(VENV) build dist site jupyter_execute docs/reference *.egg-info demo.html
