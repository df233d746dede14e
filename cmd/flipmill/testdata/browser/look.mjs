// Looks at the status pages in a Chromium, and prints what it finds as JSON. On
// standard error it says how far it is, and when the test must do something.
//
//   node look.mjs '{"url": "http://127.0.0.1:9464", "run": "http://127.0.0.1:9465", "board": 17}'
import {charts, found, inTurn, lookFor, open, wrong} from "./browser.mjs";

const {url, run, board} = JSON.parse(process.argv[2]);

const live = page => page.waitForFunction(() => document.querySelector("#link").dataset.state === "live", null, {polling: 100});

// numbers reads the page of a job.
const numbers = page => page.evaluate(() => {
  const data = at => +document.querySelector(`${at} data`).value;
  const rows = at => Object.fromEntries([...document.querySelectorAll(`${at} tbody tr`)].map(r => [r.cells[0].textContent, +r.querySelector("data").value]));
  return {
    state: document.querySelector("#progress .state").textContent,
    percent: document.querySelector("#progress .percent").textContent,
    records: data("#records"), received: data("#received"), committed: data("#committed"),
    moves: rows("#moves"), rejects: rows("#rejects"),
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
  found.small = {...await numbers(page), charts: await charts(page)};
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
  const elements = () => page.locator("main img, main script, main b, main [onclick]").count();
  await page.goto(`${url}/jobs/hostile/boards/0`);
  found.notes = await page.textContent("main");
  found.elements = await elements();
  await page.goto(`${url}/jobs/hostile/boards/1`);
  found.reject = await page.textContent("main");
  found.elements += await elements();
  await page.context().close();
}

// Pages are for everybody: of any width, in any colours, for those who see them and
// those who do not.
async function everybody() {
  for (const path of ["", "jobs/small", "jobs/boards-5x5/boards?moves=7", "jobs/boards-5x5/boards/7478?step=1", "jobs/hostile/boards/1"]) {
    for (const [colorScheme, width] of [["light", 1280], ["dark", 390]]) {
      console.error(`next: /${path} in ${colorScheme}`);
      await lookFor(`${url}/${path}`, colorScheme, width);
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
  if (await page.locator(".chart:visible").count() > 0) wrong("without scripts there is room for charts that are not drawn");
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

await inTurn(liveJob, steps, hostile, everybody, withoutScripts, endOfRun);
