// Draws the charts of a page with Apache ECharts. What a chart shows are numbers of a
// table on the page, so that who has no scripts, or does not see, has the same:
//
//   <div class="chart" id="ID" data-chart="KIND" data-table="ID of the table"
//     data-columns="1 3" role="img" aria-label="what it is" hidden></div>
//
// The first column is what the numbers of the others are about. Colours are those of
// the page's style sheet, by name: a chart changes with them, and on paper.
"use strict";

const drawCharts = (() => {
  const [ink, faint, edge, panel, accent, soft] = ["ink", "faint", "edge", "panel", "accent", "accent-soft"].map(name => `var(--${name})`);
  const compact = new Intl.NumberFormat("en", {notation: "compact", maximumSignificantDigits: 3});
  const short = x => compact.format(x);
  const percent = x => x > 0 && x < .00005 ? "<0.01%" : x < 1 && x >= .99995 ? ">99.99%" : `${(100 * x).toFixed(2)}%`;

  // read returns the names and the numbers of some columns of a table.
  function read(table, columns) {
    const value = cell => +(cell.querySelector("data")?.value ?? cell.textContent);
    const rows = [...table.tBodies[0].rows];
    return {
      keys: rows.map(r => r.cells[0].querySelector("data")?.value ?? r.cells[0].textContent),
      about: table.tHead.rows[0].cells[0].textContent,
      columns: columns.map(i => ({name: table.tHead.rows[0].cells[i].textContent, values: rows.map(r => value(r.cells[i]))})),
    };
  }

  const axis = {
    nameTextStyle: {color: faint}, axisLabel: {color: faint, hideOverlap: true},
    axisLine: {lineStyle: {color: edge}}, axisTick: {show: false}, splitLine: {lineStyle: {color: edge}},
  };
  const below = {nameLocation: "middle", nameGap: 26};
  const numbers = name => ({...axis, type: "value", name, minInterval: 1, axisLabel: {...axis.axisLabel, formatter: short}});
  const shares = name => ({...axis, type: "value", name, min: 0, max: 1, axisLabel: {...axis.axisLabel, formatter: x => `${100 * x}%`}});
  const series = (type, {name, values}, more) => ({type, name, data: values, cursor: "default", emphasis: {disabled: true}, ...more});
  const bars = (column, more) => series("bar", column, {itemStyle: {color: accent}, barMaxWidth: 48, barMinHeight: 1, ...more});
  const shareOf = {tooltip: {valueFormatter: percent}};

  // Each kind of chart is what its table becomes.
  const kinds = {
    // Boards by presses, those of a second column being among those of the first; a
    // third is the share of boards that need so many or fewer.
    histogram({keys, about, columns: [all, some, fewer]}) {
      const least = +keys[0], every = Array.from({length: +keys.at(-1) - least + 1}, (_, i) => String(least + i));
      const spread = ({name, values}) => ({name, values: every.map(key => values[keys.indexOf(key)] || null)}); // some numbers no board needs
      const drawn = [bars(spread(all), some && {itemStyle: {color: soft, borderColor: accent}})];
      if (some) drawn.push(bars(spread(some), {barGap: "-100%"}));
      const reached = ({name, values}) => ({name, values: every.map(key => values[keys.findLastIndex(k => +k <= +key)])});
      if (fewer) drawn.push(series("line", reached(fewer), {yAxisIndex: 1, step: "middle", symbol: "none", lineStyle: {color: ink, width: 1.5}, itemStyle: {color: ink}, ...shareOf}));
      return {xAxis: {...axis, ...below, type: "category", name: about, data: every}, yAxis: fewer ? [numbers(""), {...shares(""), splitLine: {show: false}}] : numbers(all.name), series: drawn};
    },
    // Shares of sizes, each with a mark at the one that it is compared with.
    shares({keys, about, columns: [is, mark]}, wide) {
      const width = Math.max(3, Math.min(32, .6 * wide / keys.length));
      return {
        xAxis: {...axis, ...below, type: "category", name: about, data: keys}, yAxis: shares(""),
        series: [bars(is, {itemStyle: {color: soft, borderColor: accent}, ...shareOf}), series("scatter", mark, {symbol: "rect", symbolSize: [width, 4], itemStyle: {color: ink, opacity: 1}, ...shareOf})],
      };
    },
    // How often each of some things is, from left to right.
    counts({keys, columns: [n]}) {
      return {xAxis: {...numbers(n.name), ...below}, yAxis: {...axis, type: "category", inverse: true, data: keys, axisLabel: {color: ink}}, series: [bars(n)]};
    },
    // A number over the time, which is in milliseconds.
    line({keys, columns: [n]}) {
      return {
        xAxis: {...axis, type: "time", splitLine: {show: false}}, yAxis: numbers(n.name),
        series: [series("line", {name: n.name, values: keys.map((at, i) => [+at, n.values[i]])}, {symbol: "none", lineStyle: {color: accent}, itemStyle: {color: accent}, areaStyle: {color: soft, opacity: 1}})],
      };
    },
  };

  const paper = matchMedia("print"); // where the style sheet makes them fit
  const sized = new ResizeObserver(changes => paper.matches || changes.forEach(c => echarts.getInstanceByDom(c.target)?.resize()));

  function make(at) {
    at.hidden = false; // it takes no room where there are no scripts
    const chart = echarts.init(at, null, {renderer: "svg", locale: "EN", useUTC: true});
    chart.on("finished", () => { // the drawing may be made smaller or larger, as for paper
      const svg = at.querySelector("svg");
      svg.setAttribute("viewBox", `0 0 ${chart.getWidth()} ${chart.getHeight()}`);
    });
    sized.observe(at);
    return chart;
  }

  return root => {
    for (const at of root.querySelectorAll(".chart")) {
      const {chart, table, columns} = at.dataset;
      const plot = echarts.getInstanceByDom(at) ?? make(at);
      const option = kinds[chart](read(document.getElementById(table), columns.split(" ").map(Number)), plot.getWidth());
      plot.setOption({
        animation: false, textStyle: {fontFamily: "system-ui, sans-serif"}, grid: {left: 52, right: 12, top: 36, bottom: 44},
        legend: {show: option.series.length > 1, top: 0, left: "center", textStyle: {color: ink}, inactiveColor: faint},
        tooltip: {
          trigger: "axis", renderMode: "richText", confine: true, backgroundColor: panel, borderColor: edge, textStyle: {color: ink},
          axisPointer: {type: chart === "line" ? "line" : "shadow", lineStyle: {color: faint}, shadowStyle: {color: edge, opacity: .5}, label: {show: false}},
        },
        ...option,
      });
    }
  };
})();

drawCharts(document);
