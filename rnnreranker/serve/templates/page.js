"use strict";
// One question, its controls and its answer. All of what the server says is written as text; the picture alone is
// markup, which the server has escaped.
const $ = (id) => document.getElementById(id);
const ENDS = {tau: 1, lam: 1, rank_weight: 1, run_weight: 1, query_weight: 1, smoothing: 1, k: 60, k_exp: 12, context: 200, probes: 10, smoothing_neighbours: 60, weight_scale: 20, rank_constant: 120};
const EVERYDAY = ["k", "k_exp", "tau", "lam", "context"]; // settings of rNN that stand open
const narrow = matchMedia("(max-width: 640px)");
const state = {offered: null, values: {}, preset: "", topic: "", answer: null, asked: 0, busy: false};

function made(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

async function call(path, body, signal) {
  const headers = {"Content-Type": "application/json"};
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(path, {method: body ? "POST" : "GET", headers, signal, body: body && JSON.stringify(body)});
  if (answer.status === 401) $("login").hidden = false;
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

function complain(error) {
  if (error && error.name === "AbortError") return;
  $("error").textContent = error ? error.message : "";
  $("error").hidden = !error;
}

// ---- controls

const reranker = () => state.offered.rerankers.find((one) => one.name === $("rerank").value);
const written = (value) => (value === null ? "none" : String(value));

function defaults() {
  const preset = reranker().presets[state.preset];
  return Object.fromEntries(reranker().settings.map((one) => [one.name, preset && one.name in preset ? preset[one.name] : one.default]));
}

function drawSettings() {
  const one = reranker();
  $("about").textContent = one ? one.about.replace(/: see `.*/, ".") : "The first stage as it is.";
  for (const id of ["settings", "others"]) $(id).replaceChildren();
  $("presets").hidden = !one || !Object.keys(one.presets).length;
  $("more").hidden = !one || one.name !== "rnn";
  if (!one) return;
  for (const setting of one.settings) $(one.name !== "rnn" || EVERYDAY.includes(setting.name) ? "settings" : "others").append(control(setting));
}

function control(setting) {
  const id = `s-${setting.name}`, value = written(state.values[setting.name]);
  const label = made("label", {className: "row", htmlFor: id, title: setting.help}, made("span", {}, setting.name));
  const help = made("small", {}, setting.help.replace(/^\w+: /, ""));
  const take = (text) => {
    if (text === "") return;
    state.values[setting.name] = text;
    ask();
  };
  if (setting.choices.length) {
    const select = made("select", {id}, ...setting.choices.map((word) => made("option", {value: word, selected: word === value}, word)));
    select.addEventListener("change", () => take(select.value));
    label.append(select);
    return made("div", {className: "setting"}, label, help);
  }
  const number = made("input", {id, value});
  label.append(number);
  const high = ENDS[setting.name] ?? 100, step = high > 4 ? 1 : 0.01;
  const slider = made("input", {type: "range", min: 0, max: high, step, value, tabIndex: -1, ariaHidden: "true"});
  slider.addEventListener("input", () => { number.value = slider.value; take(slider.value); });
  number.addEventListener("input", () => { slider.value = number.value; take(number.value); });
  return made("div", {className: "setting"}, label, slider, help);
}

function choose(values = {}) {
  state.values = reranker() ? {...defaults(), ...values} : {};
  drawSettings();
}

function form() {
  const one = reranker();
  if (!one) return null;
  const usual = defaults();
  const said = Object.entries(state.values).filter(([name, value]) => written(value) !== written(usual[name]));
  const pairs = [...(state.preset ? [["preset", state.preset]] : []), ...said].map(([name, value]) => `${name}=${written(value)}`);
  return pairs.length ? `${one.name}:${pairs.join(",")}` : one.name;
}

function question() {
  const body = {retrieve: $("retrieve").value, rerank: form(), limit: Number($("limit").value)};
  if ($("hits").value && Number($("hits").value) !== state.offered.hits) body.hits = Number($("hits").value);
  if ($("fuse").value && !$("fusing").hidden) body.fuse = $("fuse").value;
  if (state.topic) body.topic = state.topic;
  else body.query = $("query").value;
  return body;
}

const joins = () => ["auto", "hybrid"].includes($("retrieve").value) || $("retrieve").value.includes("+");

// ---- asking

async function ask() {
  if (!state.topic && !$("query").value.trim()) return;
  delete document.documentElement.dataset.ready;
  $("fusing").hidden = !joins();
  state.asked += 1;
  if (state.busy) return; // the loop below asks again: the last change wins, and no answer overtakes another
  state.busy = true;
  working(true);
  let body = null, number = 0;
  while (number !== state.asked) {
    number = state.asked;
    body = question();
    keepAddress(body);
    try {
      state.answer = await call("search", body);
      complain(null);
      show(state.answer);
    } catch (error) {
      complain(error);
      $("answer").hidden = true; // what is there is of other settings
      body = null;
    }
  }
  state.busy = false;
  working(false);
  if (body) await picture(body);
  if (number === state.asked) document.documentElement.dataset.ready = "yes";
}

// A sign that the server is at work; what is shown until it answers is of the settings before.
function working(on) {
  $("working").hidden = !on;
  $("hint").hidden ||= on;
  $("answer").setAttribute("aria-busy", on);
}

function keepAddress(body) {
  const pairs = Object.entries(body).map(([name, value]) => [name, value ?? "none"]);
  history.replaceState(null, "", `#${new URLSearchParams(pairs)}`);
}

let drawing = null;
async function picture(body) {
  $("neighbourhood").hidden = !(body.rerank || "").startsWith("rnn") || body.rerank.includes("from=tokens");
  if ($("neighbourhood").hidden) return;
  if (drawing) drawing.abort();
  drawing = new AbortController();
  const own = drawing;
  try {
    const said = await call("explain", {...body, size: narrow.matches ? "narrow" : "wide"}, own.signal);
    $("net").innerHTML = said.svg;
    for (const node of $("net").querySelectorAll(".node")) {
      const number = node.getAttribute("class").match(/\bn(\d+)\b/)[1];
      node.dataset.docid = said.elements[number];
      node.setAttribute("href", "#");
      const light = (on) => {
        for (const link of $("net").querySelectorAll(`.link.e${number}`)) link.classList.toggle("lit", on);
        mark(node.dataset.docid, on);
      };
      node.addEventListener("pointerenter", () => light(true));
      node.addEventListener("pointerleave", () => light(false));
      node.addEventListener("focus", () => light(true));
      node.addEventListener("blur", () => light(false));
      node.addEventListener("click", (event) => { event.preventDefault(); open(node.dataset.docid); });
    }
  } catch (error) {
    complain(error);
  }
}

// ---- the answer

const moveOf = (moved) => (moved === null ? ["new", "up"] : moved > 0 ? [`▲${moved}`, "up"] : moved < 0 ? [`▼${-moved}`, "down"] : ["=", "same"]);

function show(answer) {
  $("hint").hidden = true;
  $("answer").hidden = false;
  const moved = answer.after.filter((one) => one.moved !== 0).length;
  $("summary").textContent = `${answer.retriever}${answer.reranker === "none" ? "" : ` → ${answer.reranker}`} · ${answer.candidates} candidates · ${moved} of the first ${answer.after.length} moved · ${answer.milliseconds.toFixed(0)} ms`;
  const judged = answer.measures.length > 0;
  fill($("now"), answer.after, judged, (one) => moveOf(one.moved), (one) => (one.moved === null ? "not among the candidates before" : `before: rank ${one.rank + one.moved}`));
  fill($("was"), answer.before, judged, (one) => [one.moved === null ? "–" : `→ ${one.rank - one.moved}`, moveOf(one.moved)[1]], (one) => `now: rank ${one.moved === null ? "none" : one.rank - one.moved}`);
  $("measures").hidden = !judged;
  $("measures").tBodies[0].replaceChildren(...answer.measures.map((one) => {
    const change = one.after - one.before;
    const cell = made("td", {className: `n ${change > 0 ? "up" : change < 0 ? "down" : "same"}`}, made("span", {className: "move-label"}, `${change > 0 ? "+" : change < 0 ? "−" : "±"}${Math.abs(change).toFixed(4)}`));
    return made("tr", {}, made("td", {}, one.protocol === "trec" ? one.measure : `${one.measure}, protocol ${one.protocol}`), made("td", {className: "n"}, one.before.toFixed(4)), made("td", {className: "n"}, one.after.toFixed(4)), cell);
  }));
}

// Where a long docid may be broken: behind points, slashes and the like.
const breakable = (docid) => docid.split(/(?<=[._:/-])/).flatMap((piece) => [piece, made("wbr")]);

function fill(table, results, judged, label, title) {
  table.tBodies[0].replaceChildren(...results.map((one) => {
    const [text, way] = label(one);
    const name = made("button", {className: "docid", type: "button"}, ...breakable(one.docid));
    name.addEventListener("click", () => open(one.docid));
    const about = made("td", {className: judged ? "document judged" : "document"});
    if (judged) {
      const grade = one.grade === null ? "not judged" : `grade ${one.grade}`;
      about.append(made("span", {className: one.grade > 0 ? "grade good" : one.grade === 0 ? "grade" : "grade unknown", title: grade, ariaLabel: grade}, one.grade ?? "?"));
    }
    about.append(name);
    if (one.text) about.append(made("span", {className: "text"}, one.text));
    const row = made("tr", {}, made("td", {className: "n place"}, String(one.rank)), made("td", {className: way, title: title(one)}, made("span", {className: "move-label"}, text)), about, made("td", {className: "n score"}, one.score.toFixed(4)));
    row.dataset.docid = one.docid;
    row.addEventListener("pointerenter", () => mark(one.docid, true));
    row.addEventListener("pointerleave", () => mark(one.docid, false));
    return row;
  }));
}

function mark(docid, on) {
  for (const row of document.querySelectorAll("[data-docid]")) if (row.dataset.docid === docid) row.classList.toggle("marked", on);
}

async function open(docid) {
  try {
    const said = await call(`documents/${docid.split("/").map(encodeURIComponent).join("/")}`);
    const now = state.answer.after.find((one) => one.docid === docid);
    $("d-name").textContent = docid;
    $("d-moves").textContent = now ? `rank ${now.rank}${now.moved ? `, before ${now.rank + now.moved}` : ""} · score ${now.score.toFixed(6)}` : "";
    $("d-text").textContent = said.text;
    $("document").showModal();
  } catch (error) {
    complain(error);
  }
}

// ---- from the beginning

function options(select, words, named = (word) => word) {
  select.replaceChildren(...words.map((word) => made("option", {value: word}, named(word))));
}

function restore() {
  const said = new URLSearchParams(location.hash.slice(1));
  for (const id of ["retrieve", "fuse", "hits", "limit"]) if (said.has(id)) $(id).value = said.get(id);
  const [name, settings] = (said.get("rerank") ?? "").split(/:(.*)/s);
  if (name) $("rerank").value = name;
  const pairs = Object.fromEntries((settings || "").split(",").filter(Boolean).map((pair) => pair.split("=")));
  state.preset = pairs.preset ?? "";
  delete pairs.preset;
  drawPresets();
  choose(pairs);
  state.topic = said.get("topic") ?? "";
  $("topic").value = state.topic;
  $("query").value = state.topic ? $("topic").selectedOptions[0]?.dataset.query ?? "" : said.get("query") ?? "";
}

function drawPresets() {
  options($("preset"), ["", ...Object.keys(reranker()?.presets ?? {})], (word) => word || "the default");
  $("preset").value = state.preset;
}

function example(topic) {
  const button = made("button", {type: "button"}, topic.query);
  button.addEventListener("click", () => {
    $("topic").value = topic.topic;
    $("topic").dispatchEvent(new Event("change"));
  });
  return button;
}

async function begin() {
  const offered = await call("controls");
  $("login").hidden = true;
  state.offered = offered;
  $("index").textContent = offered.index;
  document.title = `${offered.index} · rnnreranker`;
  options($("retrieve"), offered.retrievers);
  options($("rerank"), [...offered.rerankers.map((one) => one.name), "none"]);
  $("fuse").append(...offered.fusions.map((word) => made("option", {value: word}, word)));
  Object.assign($("hits"), {value: offered.hits, max: offered.max_candidates});
  if (offered.topics.length) {
    $("topic").append(...offered.topics.map((one) => made("option", {value: one.topic, "data-query": one.query}, `${one.topic} · ${one.query}`)));
    $("topics").hidden = false;
    $("examples").append(...offered.topics.slice(0, 3).map((one) => example(one)));
    $("examples").hidden = false;
  }
  restore();
  if (state.topic || $("query").value) await ask();
  else document.documentElement.dataset.ready = "yes";
}

$("ask").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
$("query").addEventListener("input", () => { state.topic = $("topic").value = ""; });
$("topic").addEventListener("change", () => {
  state.topic = $("topic").value;
  $("query").value = $("topic").selectedOptions[0].dataset.query ?? "";
  ask();
});
$("controls").addEventListener("submit", (event) => event.preventDefault());
$("controls").addEventListener("reset", (event) => {
  event.preventDefault();
  Object.assign($("retrieve"), {value: state.offered.retrievers[0]});
  Object.assign($("rerank"), {value: state.offered.rerankers[0]?.name ?? "none"});
  $("hits").value = state.offered.hits;
  $("fuse").value = state.preset = "";
  drawPresets();
  choose();
  ask();
});
for (const id of ["retrieve", "fuse", "hits", "limit"]) $(id).addEventListener("change", () => ask());
$("rerank").addEventListener("change", () => { state.preset = ""; drawPresets(); choose(); ask(); });
$("preset").addEventListener("change", () => { state.preset = $("preset").value; choose(); ask(); });
$("close").addEventListener("click", () => $("document").close());
$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value);
  begin().then(() => complain(null), complain);
});
if (matchMedia("(max-width: 1000px)").matches) $("panel").open = false;
narrow.addEventListener("change", () => state.answer && picture(question()));
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  event.preventDefault();
  $("query").focus();
  $("query").select();
});
begin().catch((error) => { complain(error); document.documentElement.dataset.ready = "yes"; });
