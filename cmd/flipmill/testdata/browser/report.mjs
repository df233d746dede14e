// Looks at reports in a Chromium, and prints what it finds as JSON.
//
//   node report.mjs out/report.html more.html
import {pathToFileURL} from "node:url";
import {charts, fits, found, inTurn, lookFor, open, wrong} from "./browser.mjs";

const reports = process.argv.slice(2).map(name => pathToFileURL(name).href);

// A report is one request, whatever its charts are.
async function numbers() {
  found.charts = [];
  for (const url of reports) {
    const page = await open();
    let requests = 0;
    page.on("request", () => requests++);
    await page.goto(url);
    found.charts.push(await charts(page));
    if (requests !== 1) wrong(`${url} makes ${requests} requests`);
    const hostile = await page.locator("img, b[onclick], script:not(body > script)").count();
    if (hostile > 0) wrong(`${url} has ${hostile} elements that are its corpus's`);
    await page.context().close();
  }
}

// What is pointed at tells its numbers.
async function pointed() {
  const page = await open();
  await page.goto(reports[0]);
  const at = page.locator(".chart[data-chart=histogram]").first();
  await at.scrollIntoViewIfNeeded();
  const {width, height} = await at.boundingBox();
  await at.hover({position: {x: width / 2, y: height / 2}});
  await page.waitForFunction(() => document.querySelector(".chart[data-chart=histogram]").textContent.includes("%One optimum") ||
    [...document.querySelectorAll(".chart[data-chart=histogram] text")].filter(t => t.textContent === "One optimum").length === 2, null, {polling: 100});
  found.pointed = await at.evaluate(e => [...e.querySelectorAll("text")].map(t => t.textContent));
  await page.context().close();
}

async function light() { await lookFor(reports[1], "light", 1280); }
async function dark() { await lookFor(reports[2], "dark", 390); }

// On paper charts have the paper's width and colours, and tables are whole.
async function paper() {
  for (const url of reports) {
    const page = await open({colorScheme: "dark", viewport: {width: 390, height: 844}});
    await page.goto(url);
    await fits(page);
    await page.emulateMedia({media: "print", colorScheme: "dark"});
    await page.setViewportSize({width: 760, height: 1000});
    for (const [what, is] of Object.entries(await page.evaluate(() => ({
      "dark paper": getComputedStyle(document.documentElement).backgroundColor !== "rgb(255, 255, 255)",
      "a chart that is not as wide as its place": [...document.querySelectorAll(".chart")].some(e => {
        const svg = e.querySelector("svg").getBoundingClientRect();
        return Math.abs(svg.width - e.clientWidth) > 1 || svg.height < 100 || Math.abs(svg.height - e.clientHeight) > 1;
      }),
      "a table that is cut off": [...document.querySelectorAll(".long, .wide")].some(e => e.scrollHeight > e.clientHeight + 1),
    })))) if (is) wrong(`${url} has on paper ${what}`);
    await page.context().close();
  }
}

// Without scripts there are the tables.
async function withoutScripts() {
  const page = await open({javaScriptEnabled: false});
  await page.goto(reports[0]);
  found.plain = await page.textContent("table.histogram");
  if (await page.locator(".chart:visible").count() > 0) wrong("without scripts there is room for charts that are not drawn");
  await page.context().close();
}

await inTurn(numbers, pointed, light, dark, paper, withoutScripts);
