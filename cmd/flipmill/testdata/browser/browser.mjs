// A Chromium, and what is found in it.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {chromium} from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const patience = 120_000;
export const found = {wrong: []};
export const wrong = what => found.wrong.push(what);

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  timeout: patience,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
});

// inTurn does one thing after the other, and prints what was found.
export async function inTurn(...looks) {
  try {
    for (const look of looks) {
      console.error(`next: ${look.name}`);
      await look();
    }
  } catch (e) {
    wrong(`${e.stack}`);
  } finally {
    await browser.close();
  }
  console.log(JSON.stringify(found));
}

// open returns a page that notes whatever is wrong with it: words on its console,
// what its policy keeps from running, requests that fail or leave this machine.
export async function open(options = {}) {
  const context = await browser.newContext({reducedMotion: "reduce", ...options});
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  page.on("console", m => wrong(`console: ${m.text()}`));
  page.on("pageerror", e => wrong(`exception: ${e}`));
  page.on("dialog", d => { wrong(`dialog: ${d.message()}`); d.dismiss(); });
  page.on("requestfailed", r => r.url().endsWith("/events") || wrong(`failed: ${r.url()} ${r.failure().errorText}`));
  page.on("request", r => /^(http:\/\/127\.0\.0\.1:|file:)/.test(r.url()) || wrong(`a request leaves: ${r.url()}`));
  return page;
}

// fits sees whether a page is as wide as its window.
export async function fits(page) {
  const [wide, width] = await page.evaluate(() => [document.scrollingElement.scrollWidth, innerWidth]);
  if (wide > width) wrong(`${page.url()} is ${wide} wide, in a window of ${width}`);
  const high = await page.evaluate(() => Math.max(0, ...[...document.querySelectorAll("tr")].map(r => r.offsetHeight)));
  if (high > 320) wrong(`${page.url()} has a row ${high} high in a window ${width} wide: a text has hardly any room`);
}

// lookFor looks at a page for those who see it in some colours and width, and for
// those who do not.
export async function lookFor(url, colorScheme, width) {
  const page = await open({colorScheme, viewport: {width, height: 844}});
  await page.goto(url);
  await fits(page);
  await page.evaluate(axe); // past the policy, as the developer's tools are
  for (const v of await page.evaluate(() => axe.run().then(r => r.violations))) {
    wrong(`${url}, ${colorScheme}: ${v.id}: ${v.nodes.map(n => n.html).slice(0, 3).join(" ")}`);
  }
  await page.context().close();
}

// charts reads what the charts of a page show: their keys, and the values of each
// series; of bars also how high they are drawn, in pixels, where there is one.
export const charts = page => page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".chart")].map(at => {
  const {xAxis, yAxis, series} = echarts.getInstanceByDom(at).getOption();
  const solid = [...at.querySelectorAll("svg path[fill='var(--accent)']")].map(p => p.getBBox());
  return [at.id, {
    keys: xAxis[0].data ?? yAxis[0].data ?? [],
    series: series.map(s => s.data.map(d => Array.isArray(d) ? d[1] : d)), // a line has places, too
    heights: solid.filter(b => b.width > 0).map(b => b.height),
  }];
})));
