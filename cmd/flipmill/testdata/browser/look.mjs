// Looks at the status pages in a Chromium, and prints what it finds as JSON. On
// standard error it says how far it is, and when the test must do something.
//
//   node look.mjs '{"url": "http://127.0.0.1:9464", "run": "http://127.0.0.1:9465", "board": 17}'
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {chromium} from "playwright-core";

const {url, run, board} = JSON.parse(process.argv[2]);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const patience = 120_000;
const found = {wrong: []};
const wrong = what => found.wrong.push(what);

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  timeout: patience,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
});

// open returns a page that notes whatever is wrong with it: words on its console,
// what its policy keeps from running, requests that fail or leave this machine.
async function open(options = {}) {
  const context = await browser.newContext({reducedMotion: "reduce", ...options});
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  page.on("console", m => wrong(`console: ${m.text()}`));
  page.on("pageerror", e => wrong(`exception: ${e}`));
  page.on("dialog", d => { wrong(`dialog: ${d.message()}`); d.dismiss(); });
  page.on("requestfailed", r => r.url().endsWith("/events") || wrong(`failed: ${r.url()} ${r.failure().errorText}`));
  page.on("request", r => r.url().startsWith("http://127.0.0.1:") || wrong(`a request leaves: ${r.url()}`));
  return page;
}

const live = page => page.waitForFunction(() => document.querySelector("#link").dataset.state === "live", null, {polling: 100});

// numbers reads the page of a job.
const numbers = page => page.evaluate(() => {
  const data = at => +document.querySelector(`${at} data`).value;
  const rows = at => Object.fromEntries([...document.querySelectorAll(`${at} tbody tr`)].map(r => [r.cells[0].textContent, +r.querySelector("data").value]));
  return {
    state: document.querySelector("#progress .state").textContent,
    percent: document.querySelector("#progress .percent").textContent,
    records: data("#records"), received: data("#received"), committed: data("#committed"),
    moves: rows("#moves"), rejects: rows("#rejects"), bars: document.querySelectorAll("#moves svg .bar").length,
  };
});

// A job is followed from before its first worker to its end, without loading its
// page a second time.
async function liveJob() {
  const page = await open();
  await page.goto(`${url}/jobs/small`);
  await live(page);
  await page.evaluate(() => { window.loaded = "once"; document.querySelector("#browse").focus(); });
  console.error("the page of small is open");
  await page.waitForFunction(() => document.querySelector("#say").textContent === "small is done", null, {polling: 100});
  found.kept = await page.evaluate(() => `${window.loaded}, ${document.activeElement.id}`);
  found.small = await numbers(page);
  await page.goto(`${url}/`);
  found.list = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll("#jobs tbody tr")].map(r => [r.cells[0].textContent, r.textContent])));
  await page.context().close();
}

// step reads the cells from what draws them, and how many presses have been made.
const step = page => page.evaluate(() => {
  const svg = document.querySelector("#step svg"), {width, height} = svg.viewBox.baseVal;
  const cols = (width - 1) / 10, cells = Array(cols * (height - 1) / 10).fill("0");
  for (const [, x, y] of svg.querySelector(".on").getAttribute("d").matchAll(/M([\d.]+) ([\d.]+)/g)) cells[Math.floor(y / 10) * cols + Math.floor(x / 10)] = "1";
  return {cells: cells.join(""), made: svg.querySelectorAll("circle.made").length, told: document.querySelector("#told").textContent};
});

// A board is found by its moves and stepped through by keys.
async function steps() {
  const page = await open();
  await page.goto(`${url}/jobs/boards-5x5/boards`);
  await page.fill("input[name=moves]", "15");
  await page.press("input[name=moves]", "Enter");
  await page.click(`a[href="/jobs/boards-5x5/boards/${board}"]`);
  await page.waitForSelector("#step .keys:not([hidden])");
  found.steps = [await step(page)];
  await page.focus("#after");
  const made = n => page.waitForFunction(n => document.querySelectorAll("#step circle.made").length === n, n, {polling: 100});
  for (let n = 1; n <= 15; n++) {
    await page.keyboard.press("ArrowRight");
    await made(n);
    found.steps.push(await step(page));
  }
  found.focus = await page.evaluate(() => document.activeElement.id);
  found.said = await page.textContent("#say");
  found.address = page.url();
  for (const key of ["ArrowLeft", "ArrowLeft", "ArrowLeft"]) await page.keyboard.press(key); // faster than they are answered
  await made(12);
  await page.reload(); // the address is that of the step
  await made(12);
  await page.keyboard.press("Home");
  await made(0);
  await page.context().close();
}

// What others call things is shown, and is nothing more.
async function hostile() {
  const page = await open();
  await page.goto(`${url}/jobs/hostile/boards`);
  found.ids = await page.textContent(".cards");
  await page.goto(`${url}/jobs/hostile/boards/1`);
  found.reject = await page.textContent("main");
  found.elements = await page.locator("main img, main script, main b, main [onclick]").count();
  await page.context().close();
}

// Pages are for everybody: of any width, in any colours, for those who see them and
// those who do not.
async function everybody() {
  for (const path of ["", "jobs/small", "jobs/boards-5x5/boards?moves=7", "jobs/boards-5x5/boards/7478?step=1", "jobs/hostile/boards/1"]) {
    for (const [colorScheme, width] of [["light", 1280], ["dark", 390]]) {
      console.error(`next: /${path} in ${colorScheme}`);
      const page = await open({colorScheme, viewport: {width, height: 844}});
      await page.goto(`${url}/${path}`);
      const wide = await page.evaluate(() => document.scrollingElement.scrollWidth);
      if (wide > width) wrong(`/${path} is ${wide} wide, in a window of ${width}`);
      await page.evaluate(axe); // past the policy, as the developer's tools are
      for (const v of await page.evaluate(() => axe.run().then(r => r.violations))) {
        wrong(`/${path}, ${colorScheme}: ${v.id}: ${v.nodes.map(n => n.html).slice(0, 3).join(" ")}`);
      }
      await page.context().close();
    }
  }
}

// Links do what scripts do.
async function withoutScripts() {
  const page = await open({javaScriptEnabled: false});
  await page.goto(`${url}/jobs/boards-5x5/boards/7478`);
  await page.click("#after");
  await page.waitForSelector("#press-1[aria-current=step]");
  found.link = await page.textContent("#told");
  await page.goto(`${url}/jobs/small`);
  found.plain = await page.textContent("#received");
  found.again = await page.locator("meta[http-equiv=refresh]").count();
  await page.context().close();
}

// The page of a run keeps the last that it was told.
async function endOfRun() {
  const page = await open();
  await page.goto(`${run}/jobs/endless`);
  await live(page);
  await page.waitForFunction(() => +(document.querySelector("#committed data")?.value ?? 0) > 0, null, {polling: 100});
  console.error("the page of endless is open");
  await page.waitForFunction(() => document.querySelector("#say").textContent === "the process has ended", null, {polling: 100});
  found.last = await page.textContent("#received");
  await page.context().close();
}

try {
  for (const look of [liveJob, steps, hostile, everybody, withoutScripts, endOfRun]) {
    console.error(`next: ${look.name}`);
    await look();
  }
} catch (e) {
  wrong(`${e.stack}`);
} finally {
  await browser.close();
}
console.log(JSON.stringify(found));
