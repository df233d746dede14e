// What pages do where scripts run: they take in what changes without being loaded
// again, and a board is stepped through in place. All of it works without, by
// links, too.
"use strict";

// say tells those who listen to the page.
function say(text) {
  const at = document.getElementById("say");
  if (text && at.textContent !== text) at.textContent = text;
}

// replace puts other content into an element and keeps what the reader has made of
// the old: which details are open, where the focus is, and what a chart is asked.
function replace(at, html) {
  const open = [...at.querySelectorAll("details[open]")].map(e => e.id);
  const focus = at.contains(document.activeElement) ? document.activeElement.id : "";
  const scrolled = [...at.querySelectorAll(".wide, .long")].map(e => [e.scrollLeft, e.scrollTop]);
  const charts = [...at.querySelectorAll(".chart")];
  const made = document.createElement("template");
  made.innerHTML = html;
  for (const c of charts) made.content.getElementById(c.id)?.replaceWith(c);
  at.replaceChildren(made.content);
  for (const c of charts) if (!c.isConnected) echarts.getInstanceByDom(c)?.dispose();
  if (at.querySelector(".chart")) drawCharts(at);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  at.querySelectorAll(".wide, .long").forEach((e, i) => { [e.scrollLeft, e.scrollTop] = scrolled[i] ?? [0, 0]; });
  if (focus) (document.getElementById(focus) ?? at).focus({preventScroll: true});
}

// selecting reports whether the reader is marking text in an element.
function selecting(at) {
  const s = getSelection();
  return s && !s.isCollapsed && s.containsNode(at, true);
}

// follow brings the page up to date for as long as it is looked at.
function follow(address) {
  const link = document.getElementById("link");
  const state = (name, text) => { link.dataset.state = name; link.textContent = text; };
  const late = new Map(); // sections that the reader keeps from changing
  let source, again, ended = false;
  const connect = () => {
    clearTimeout(again);
    if (source || ended || document.hidden) return;
    source = new EventSource(address);
    source.addEventListener("update", e => {
      state("live", "live");
      const told = JSON.parse(e.data);
      for (const s of told.sections ?? []) late.set(s.id, s.html);
      for (const [id, html] of late) {
        const at = document.getElementById(id);
        if (at && !selecting(at)) { replace(at, html); late.delete(id); }
      }
      say(told.say);
    });
    source.addEventListener("end", () => {
      ended = true;
      close();
      state("lost", "the process has ended: this is the last that it told");
      say("the process has ended");
    });
    source.onerror = () => {
      state("lost", "no connection, trying again");
      if (source.readyState === EventSource.CLOSED) { // refused: not tried again by itself
        close();
        again = setTimeout(connect, 10000);
      }
    };
  };
  const close = () => { source?.close(); source = undefined; };
  document.addEventListener("visibilitychange", () => document.hidden ? close() : connect());
  addEventListener("pagehide", close);
  addEventListener("pageshow", connect);
  connect();
}

// steps shows the steps of a board in place of each other. What is asked for while a
// step is being loaded comes after it.
function steps(at) {
  const asked = []; // functions that return an address, or nothing
  let busy = false;
  const load = async address => {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    replace(at, page.getElementById("step").innerHTML);
    history.replaceState(null, "", address);
    shown();
    hints();
    say(document.getElementById("told").textContent);
  };
  const go = async next => {
    asked.push(next);
    if (busy) return;
    busy = true;
    while (asked.length > 0) {
      const address = asked.shift()();
      if (!address) continue;
      try {
        await load(address);
      } catch {
        location.href = address;
        return;
      }
    }
    busy = false;
  };
  const shown = () => { // the step in the list of presses, without moving the page
    const now = at.querySelector(".presses [aria-current]"), list = now?.closest(".presses");
    if (now) list.scrollTop += now.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
  };
  const hints = () => at.querySelector(".keys")?.removeAttribute("hidden");
  const named = key => at.querySelector(`a[data-step="${CSS.escape(key)}"]`);
  at.addEventListener("click", e => {
    const link = e.target.closest("a[data-step]");
    if (!link || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    const {dataset: {step}, href} = link;
    go(step ? () => named(step)?.href : () => href);
  });
  document.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.shiftKey || e.altKey || e.key.length === 1 || !named(e.key)) return;
    e.preventDefault();
    go(() => named(e.key)?.href);
  });
  shown();
  hints();
}

if (document.body.dataset.events) follow(document.body.dataset.events);
const board = document.getElementById("step");
if (board) steps(board);
