// Keeps the dashboard fresh: figures from the event stream, domains from the API; sends orders without leaving the page.
// The page is whole without it. Everything told by others goes in as text, never as markup.
"use strict";
(() => {
  const board = document.getElementById("board");
  const base = `/crawl/${encodeURIComponent(board.dataset.crawl)}`;
  const byId = (id) => document.getElementById(id);
  const MOST_SAMPLES = 900, SAID_EVERY_MS = 15000, DOMAINS_EVERY_MS = 20000, SLOWEST = 12;

  // --- words, as fyke.serve.wording has them
  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 0 });
  const rate = (value) => value < 100 ? value.toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 }) : number(value);
  const size = (bytes) => {
    let value = bytes;
    for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
      if (value < 1000 || unit === "TB") return unit === "B" ? `${Math.round(value)} B` : `${value.toFixed(1)} ${unit}`;
      value /= 1000;
    }
  };
  const duration = (seconds) => {
    const whole = Math.floor(seconds), two = (value) => String(value).padStart(2, "0");
    if (whole >= 3600) return `${Math.floor(whole / 3600)}h${two(Math.floor(whole % 3600 / 60))}m`;
    return whole >= 60 ? `${Math.floor(whole / 60)}m${two(whole % 60)}s` : `${whole}s`;
  };
  const clean = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb]/g, " ");
  const units = { number: rate, count: number, size };

  // --- tables
  function row(cells, link) {
    const made = document.createElement("tr");
    cells.forEach((cell, at) => {
      const box = document.createElement(at ? "td" : "th");
      if (!at) box.scope = "row";
      if (!at && link) {
        const anchor = document.createElement("a"), name = document.createElement("bdi");
        anchor.href = link;
        name.textContent = cell;
        anchor.append(name);
        box.append(anchor);
      } else {
        box.textContent = cell;
      }
      made.append(box);
    });
    return made;
  }
  function fill(id, rows, columns, none) {
    const body = byId(id);
    if (!body || (document.activeElement && body.contains(document.activeElement))) return;  // do not take the focus away
    if (!rows.length) {
      const empty = row([none]);
      empty.firstChild.colSpan = columns;
      empty.firstChild.className = "quiet";
      rows = [empty];
    }
    body.replaceChildren(...rows);
  }

  // --- how it stands
  let samples = [], spokenAt = 0, spokenState = "";
  function show(latest) {
    const figures = latest.figures, now = figures.statistics;
    if (!now) return;
    if (!document.querySelector("[data-figure]")) { location.reload(); return; }
    const shown = {
      ...Object.fromEntries(["pages", "waiting", "urls", "in_flight", "hosts_asleep", "domains"].map((name) => [name, number(now[name])])),
      ...Object.fromEntries(["bytes", "archive_bytes", "memory_bytes"].map((name) => [name, size(now[name])])),
      awake: number(now.hosts - now.hosts_asleep),
      fresh: `${(100 * (now.freshness.fresh ?? 0)).toFixed(1)} %`,
      due: number(now.freshness.due ?? 0),
      pages_s: latest.live ? rate(latest.pages_s) : "–",
      bytes_s: latest.live ? size(latest.bytes_s) : "–",
    };
    for (const box of board.querySelectorAll("[data-figure]")) box.textContent = shown[box.dataset.figure];
    for (const box of board.querySelectorAll("[data-queue]")) box.textContent = number(figures.queues[box.dataset.queue] ?? 0);
    const state = byId("state");
    state.textContent = latest.words;
    state.className = `state ${latest.state.replace(/[^a-z]/g, "")}`;
    byId("told").textContent = latest.live ? "Live, from the crawl itself."
      : `As of its last checkpoint, ${new Date(latest.at * 1000).toLocaleString()}.`;
    byId("blocked").textContent = figures.blocked.length ? `Blocked: ${clean(figures.blocked.join(", ").slice(0, 400))}.` : "";
    byId("not-running").hidden = latest.live;
    byId("all-orders").hidden = !latest.live;
    const outcomes = Object.entries(now.outcomes).sort((a, b) => b[1] - a[1]);
    fill("outcome-rows", outcomes.map(([name, count]) => row([name.replaceAll("_", " "), number(count)])), 2, "None has ended yet.");
    fill("slowest-rows", figures.slowest.slice(0, SLOWEST).map((host) => row(
      [clean(host.host), number(host.waiting) + (host.more_on_disk ? "+" : ""), `${host.delay_s.toFixed(1)} s`, duration(host.left_s)],
      `${base}/host/${encodeURIComponent(host.host)}`)), 4, latest.live ? "No host waits." : "Shown only while the crawl runs.");
    speak(latest, now);
    if (latest.live) sample([latest.at, latest.pages_s, latest.bytes_s, now.waiting, now.hosts - now.hosts_asleep, now.memory_bytes]);
  }
  // What a screen reader says: seldom, and at once when the state changes.
  function speak(latest, now) {
    if (latest.state === spokenState && Date.now() - spokenAt < SAID_EVERY_MS) return;
    spokenAt = Date.now();
    spokenState = latest.state;
    byId("spoken").textContent = `${latest.state}: ${number(now.pages)} pages`
      + (latest.live ? `, ${rate(latest.pages_s)} a second` : "") + `, ${number(now.waiting)} URLs waiting`;
  }
  function sample(one) {
    if (samples.length && one[0] <= samples[samples.length - 1][0]) return;
    samples.push(one);
    if (samples.length > MOST_SAMPLES) samples = samples.filter((_, at) => at % 2 === 0);
    plot();
  }
  function plot() {
    if (samples.length < 2 || !byId("plots")) return;
    byId("plots").hidden = false;
    for (const figure of board.querySelectorAll(".plot")) Plot.draw(figure, samples, units[figure.dataset.unit]);
    if (byId("samples").closest("details").open) tabulate();
  }
  function tabulate() {
    const step = Math.ceil(samples.length / 30);
    const rows = samples.filter((_, at) => (samples.length - 1 - at) % step === 0).reverse();
    byId("samples").tBodies[0].replaceChildren(...rows.map(([at, pages, bytes, waiting, awake, memory]) => row(
      [new Date(at * 1000).toLocaleTimeString(), rate(pages), size(bytes), number(waiting), number(awake), size(memory)])));
  }
  async function domains() {
    const answer = await fetch(`/api/domains?limit=15&crawl=${encodeURIComponent(board.dataset.crawl)}`).catch(() => null);
    if (!answer?.ok) return;
    const found = await answer.json();
    fill("domain-rows", found.map(({ domain }) => row(
      [clean(domain.domain), number(domain.in_degree), number(domain.budget), number(domain.fetched), number(domain.waiting)])), 5, "None is known yet.");
  }
  function watch() {
    const stream = new EventSource(`${base}/events`);
    stream.addEventListener("history", (event) => { samples = JSON.parse(event.data); plot(); });
    stream.addEventListener("standing", (event) => show(JSON.parse(event.data)));
    stream.addEventListener("error", () => {
      if (!byId("told").classList.contains("stale")) byId("told").textContent = "The server is not heard; trying again.";
      byId("told").classList.add("stale");
    });
    stream.addEventListener("open", () => byId("told").classList.remove("stale"));
    byId("samples")?.closest("details").addEventListener("toggle", tabulate);
    setInterval(domains, DOMAINS_EVERY_MS);
  }

  // --- orders: the token comes in the address's fragment, which is sent nowhere, and is kept for this tab alone
  const KEPT = "fyke-token";
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEPT, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  const token = byId("token");
  token.value = sessionStorage.getItem(KEPT) ?? "";
  for (const box of document.querySelectorAll(".without-script")) {
    const field = box.querySelector("input");
    if (field !== token) { field.required = false; box.hidden = true; }
  }
  for (const form of document.querySelectorAll("#steer form")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const order = Object.fromEntries(new FormData(form, event.submitter));
      order.token = token.value;
      if (!order.token) { said("Give the token first.", true); token.focus(); return; }
      if (order.do === "stop" && !confirm("Stop the crawl? The same command resumes it.")) return;
      const answer = await fetch(form.action, {
        method: "POST",
        headers: { Accept: "application/json", "Content-Type": "application/json", "X-Fyke-Token": order.token },
        body: JSON.stringify(order),
      }).catch(() => null);
      if (!answer) { said("The server is not heard.", true); return; }
      const words = await answer.json();
      if (answer.ok) sessionStorage.setItem(KEPT, order.token);
      said(words.said ?? words.error, !answer.ok);
      if (answer.ok && order.do === "seeds") form.reset();
      if (answer.ok && board.dataset.still) setTimeout(() => location.reload(), 1200);
    });
  }
  function said(words, bad) {
    byId("said").textContent = words;
    byId("said").classList.toggle("bad", bad);
  }

  if (!board.dataset.still) watch();
})();
