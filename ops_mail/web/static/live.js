// Keeps the page up to date: server-sent events bring the parts that changed, times are written anew each second.
// Without this script the page reloads itself every few seconds and shows the same.
"use strict";

(() => {
  const root = document.documentElement;
  const words = JSON.parse(root.dataset.words);
  const light = document.getElementById("live");
  const lightText = document.getElementById("live-text");
  const SILENCE = 16000; // the server beats every 5 s; after three missed beats the page may be old
  const RETRY = 10000;

  let skew = Date.parse(root.dataset.now) - Date.now(); // of this machine's clock to the server's
  let heard = Date.now();
  let source = null;
  let condition = "";
  const waiting = new Map(); // parts that came while the reader was marking text in them

  // ---- times

  const format = (options) => new Intl.DateTimeFormat(root.lang, { hourCycle: "h23", ...options });
  const clock = format({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const hour = format({ hour: "2-digit", minute: "2-digit" });
  const day = format({ month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
  const whole = format({ dateStyle: "full", timeStyle: "long" });

  function relative(seconds) {
    const way = seconds >= 0 ? "ago" : "in";
    const size = Math.abs(seconds);
    let unit = "d";
    let number = Math.round(size / 86400);
    if (size < 100) [unit, number] = ["s", Math.floor(size)];
    else if (size < 6000) [unit, number] = ["min", Math.round(size / 60)];
    else if (size < 172800) [unit, number] = ["h", Math.round(size / 3600)];
    return words[`${way}.${unit}`].replace("{n}", number);
  }

  function write(element, text) {
    if (element && element.textContent !== text) element.textContent = text;
  }

  function tellRelative(scope) {
    const now = Date.now() + skew;
    for (const time of scope.querySelectorAll("time:not([data-form])")) {
      write(time.querySelector(".rel"), relative((now - Date.parse(time.dateTime)) / 1000));
    }
  }

  function tellLocal(scope) {
    const today = new Date(Date.now() + skew).toDateString();
    for (const time of scope.querySelectorAll("time")) {
      const at = new Date(time.dateTime);
      time.title = `${whole.format(at)} · ${time.dateTime}`;
      if (time.dataset.form === "hour") time.textContent = hour.format(at);
      else if (time.dataset.form === "date-hour") time.textContent = day.format(at);
      else write(time.querySelector(".abs"), (at.toDateString() === today ? clock : day).format(at));
    }
  }

  // ---- parts

  function beingMarked(part) {
    const marked = document.getSelection();
    return marked && !marked.isCollapsed && part.contains(marked.anchorNode);
  }

  function replace(part, html) {
    const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
    const open = [...part.querySelectorAll("details[open]")].map((element) => element.id);
    part.innerHTML = html; // the server's own, escaped there; the content security policy lets no script in it run
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused) document.getElementById(focused)?.focus();
    tellLocal(part);
    tellRelative(part);
  }

  function change(key, value) {
    if (key === "title") {
      if (document.title !== value) {
        document.title = value;
        write(document.getElementById("announce"), value);
      }
      return;
    }
    if (key === "icon") {
      document.getElementById("icon").setAttribute("href", value);
      return;
    }
    const part = document.getElementById(key.slice(1));
    if (!part) return;
    if (beingMarked(part)) waiting.set(key, value);
    else {
      waiting.delete(key);
      replace(part, value);
    }
  }

  // ---- connection

  function show(next) {
    if (condition === next) return;
    condition = next;
    light.className = `live ${next === "denied" ? "lost" : next}`;
    write(lightText, words[`live.${next}`]);
  }

  function hear(now) {
    heard = Date.now();
    skew = Date.parse(now) - heard;
    show("on");
  }

  function connect() {
    source = new EventSource(root.dataset.events);
    source.addEventListener("update", (event) => {
      const { now, changed } = JSON.parse(event.data);
      hear(now);
      for (const [key, value] of Object.entries(changed)) change(key, value);
    });
    source.addEventListener("beat", (event) => hear(event.data));
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED) return show("lost"); // it tries again by itself
      source.close();
      setTimeout(fetchWhole, RETRY);
      show("lost");
    });
  }

  // The feed was refused (too many readers, or signed out): the page itself says which, and may be shown meanwhile.
  async function fetchWhole() {
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.status === 401) return show("denied");
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        hear(fresh.documentElement.dataset.now);
        for (const part of fresh.querySelectorAll(".part")) change(`#${part.id}`, part.innerHTML);
        change("title", fresh.title);
      }
    } catch {
      show("lost");
    }
    connect();
  }

  tellLocal(document);
  show("wait");
  connect();
  setInterval(() => {
    if (Date.now() - heard > SILENCE) show("lost");
    for (const [key, value] of [...waiting]) change(key, value);
    tellRelative(document);
  }, 1000);
})();
