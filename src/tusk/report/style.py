"""The style of a page, on wide and narrow screens, by day and by night."""

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #646b76; --faint: #b9bec7; --paper: #f6f5f1; --card: #fff;
  --line: #e3e0d7; --accent: #c2410c; --heat: 194 65 12; --good: #2e7d4f; --bad: #b3123a; --deep: #14161a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e9e7e1; --soft: #a0a6b1; --faint: #565c68; --paper: #121417; --card: #1b1e23; --line: #2e3239;
    --accent: #fb923c; --heat: 251 146 60; --good: #6bbf8e; --bad: #ff6b81; --deep: #0b0c0e; }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 60px; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, sans-serif;
  -webkit-text-size-adjust: 100%; }
main { max-width: 1320px; margin: 0 auto; padding: 40px 28px 72px; }
h1 { font-size: clamp(1.7rem, 4vw, 2.6rem); line-height: 1.12; letter-spacing: -.02em; margin: 0 0 14px;
  text-wrap: balance; overflow-wrap: anywhere; }
h2 { font-size: 1.45rem; letter-spacing: -.01em; line-height: 1.2; margin: 56px 0 6px; }
h3 { font-size: .95rem; margin: 0 0 8px; }
p { margin: 0 0 12px; max-width: 74ch; }
.soft { color: var(--soft); }
.lead { font-size: 1.12rem; }
.kicker { color: var(--soft); font-size: .95rem; margin-bottom: 4px; overflow-wrap: anywhere; }
.split { font-size: 1.2rem; max-width: none; }
.counts { list-style: none; display: flex; flex-wrap: wrap; gap: 10px 22px; margin: 18px 0 8px; }
.counts li { display: flex; gap: 8px; align-items: center; } .counts b { font-size: 1.15rem; margin-right: 3px; }
.counts span { color: var(--soft); } .counts b { color: var(--ink); } .counts .none { opacity: .5; }
.note { font-size: .88rem; } .limits { margin: 14px 0; }
figure, ul { margin: 0; padding: 0; min-width: 0; }
img, svg { display: block; width: 100%; height: auto; }
.pixels { image-rendering: pixelated; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: 14px; min-width: 0; }
nav { position: sticky; top: 0; z-index: 1; background: color-mix(in srgb, var(--paper) 92%, transparent);
  border-bottom: 1px solid var(--line); backdrop-filter: blur(6px); }
nav div { max-width: 1320px; margin: 0 auto; padding: 10px 28px; display: flex; gap: 22px; overflow-x: auto;
  white-space: nowrap; font-size: .9rem; scrollbar-width: none; }
nav a { color: var(--soft); text-decoration: none; } nav a:hover { color: var(--accent); }
nav b { color: var(--ink); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 24px 0; }
.figures b { display: block; font-size: 1.75rem; line-height: 1.2; letter-spacing: -.02em; overflow-wrap: anywhere; }
.figures span { font-size: .88rem; }
.overview { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 0 16px; }
.overview section { display: flex; flex-direction: column; } .overview .card { flex: 1; margin-top: 8px; }
.overview h2 { margin-top: 28px; }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 4px 22px; margin: 0;
  font-size: .92rem; align-content: start; }
.facts dt { color: var(--soft); } .facts dd { margin: 0; overflow-wrap: anywhere; }
.remarks { list-style: none; display: grid; gap: 10px; align-content: start; }
.remarks li { display: grid; grid-template-columns: 26px minmax(0, 1fr); gap: 10px; align-items: start; }
.remarks li::before { content: "!"; font-weight: 700; text-align: center; line-height: 24px; width: 24px; height: 24px;
  border-radius: 50%; color: var(--card); background: var(--accent); }
.remarks li.well::before { content: "\\2713"; background: var(--good); }
.remarks li.bad::before { content: "\\2715"; background: var(--bad); }
.verdict { max-width: none; font-weight: 600; padding: 10px 16px; border-radius: 10px; border-left: 8px solid;
  background: var(--card); } .verdict.well { border-color: var(--good); }
.verdict.amiss { border-color: var(--accent); } .verdict.bad { border-color: var(--bad); }
.examples { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 390px), 1fr)); gap: 16px; }
.example { display: grid; grid-template-columns: repeat(3, 1fr); gap: 10px; align-content: start; }
.example figure:first-child { grid-column: 1 / -1; }
.example img, .points { border-radius: 6px; }
figcaption { font-size: .8rem; color: var(--soft); text-align: center; margin-top: 3px; }
.points { background: var(--deep); overflow: hidden; } .points circle { stroke: #fff; }
.points .ring { fill: #000; stroke: none; }
.shade { fill: #000; fill-opacity: .68; } .total { fill: #fff; stroke: #000; stroke-width: 2; paint-order: stroke; }
.points text { font-family: system-ui, sans-serif; font-weight: 600; } .numbers text { text-anchor: middle; }
.numbers rect { stroke: #000; stroke-width: .8; }
.types { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 236px), 1fr)); gap: 16px; }
.types.many { grid-template-columns: repeat(auto-fill, minmax(min(100%, 150px), 1fr)); gap: 10px; }
.many .type { padding: 9px; }
.type { border-top: 4px solid var(--own); display: flex; flex-direction: column; gap: 8px; }
.type header { display: flex; gap: 2px 8px; align-items: center; flex-wrap: wrap; }
i { width: 12px; height: 12px; border-radius: 50%; flex: none; display: inline-block; }
i.chip { width: auto; height: auto; min-width: 1.7em; padding: 0 .4em; border-radius: 5px; border: 1px solid #0009;
  font: 600 .86rem/1.5 system-ui, sans-serif; text-align: center; }
.tag { margin-left: auto; font-size: .8rem; padding: 1px 9px; border: 1px solid var(--line); border-radius: 99px;
  max-width: 100%; overflow: hidden; text-overflow: ellipsis; }
.alone img { border-radius: 8px; }
.crops { display: grid; grid-template-columns: repeat(4, 1fr); gap: 4px; } .crops img { border-radius: 4px; }
.type p { margin: auto 0 0; font-size: .88rem; } .type p b { color: var(--ink); }
.type.idle { opacity: .6; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr)); gap: 16px; }
.plot { position: relative; padding-left: 54px; } .plot svg { height: 170px; overflow: visible; }
.plot span { position: absolute; left: 0; width: 48px; text-align: right; font-size: .74rem; color: var(--soft);
  line-height: 1; }
.plot .high { top: -3px; } .plot .low { bottom: -3px; }
.grid { stroke: var(--line); fill: none; vector-effect: non-scaling-stroke; }
polyline { fill: none; stroke-width: 2.2; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.sample { width: 24px; height: 4px; flex: none; } .sample path { stroke-width: 2.2; fill: none; }
.axis { display: flex; justify-content: space-between; font-size: .76rem; color: var(--soft); margin: 6px 0 8px 54px; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: .84rem; }
.legend li { display: flex; gap: 6px; align-items: center; }
.scatters { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 16px; }
.scatter { max-width: 700px; }
.dots { fill: none; stroke-width: 7; stroke-linecap: round; stroke-opacity: .72; }
.cross, .halo { fill: none; } .cross { stroke: var(--ink); stroke-width: 2.2; }
.halo { stroke: var(--card); stroke-width: 5; }
.confusions { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }
.confusion { max-width: 100%; } .scroll { overflow: auto; max-height: 80vh; }
table { border-collapse: separate; border-spacing: 2px; font-size: .84rem; font-variant-numeric: tabular-nums; }
tbody td { min-width: 38px; height: 30px; text-align: center; border-radius: 4px; padding: 0 4px; }
td.full { color: var(--card); }
td.right { outline: 1.5px solid var(--ink); outline-offset: -1.5px; font-weight: 700; }
tbody th { text-align: left; font-weight: 500; white-space: nowrap; padding-right: 10px; position: sticky; left: 0;
  background: var(--card); } tbody th i { margin-right: 7px; }
thead th { font-weight: 500; color: var(--soft); }
.slanted thead th { height: 104px; vertical-align: bottom; }
.slanted thead span { display: inline-block; writing-mode: vertical-rl; transform: rotate(180deg); }
.apart { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 500px), 1fr)); gap: 16px; }
.layered .whole { display: grid; grid-template-columns: repeat(auto-fit, minmax(120px, 1fr)); gap: 10px; }
.layered .layers { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 150px), 1fr)); gap: 10px;
  margin-top: 14px; padding-top: 14px; border-top: 1px solid var(--line); }
.layered img { border-radius: 5px; } .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 4px; }
.pair img:first-child { background: repeating-conic-gradient(#8d929b 0 25%, #6d727c 0 50%) 0 0 / 14px 14px; }
figcaption i.chip { font-size: .74rem; min-width: 1.5em; }
.panels { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 3px 14px; margin: 0 0 16px;
  font-size: .92rem; max-width: 90ch; } .panels dt { font-weight: 600; } .panels dd { margin: 0; color: var(--soft); }
.chart p.soft, .scatter p.soft { font-size: .86rem; margin-bottom: 10px; }
.tree { max-width: 560px; } .tree path { fill: none; stroke: var(--soft); stroke-width: 1.6; }
.tree text { font: 12px system-ui, sans-serif; fill: var(--ink); }
footer { margin-top: 64px; font-size: .85rem; color: var(--soft); }
@media (max-width: 620px) {
  main { padding: 24px 14px 48px; } nav div { padding: 10px 14px; gap: 16px; }
  .types { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 10px; } .type { padding: 10px; }
  .example { gap: 6px; padding: 8px; } .facts { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .panels { grid-template-columns: minmax(0, 1fr); } .panels dd { margin-bottom: 6px; }
  .facts dd { margin-bottom: 8px; } .figures { grid-template-columns: 1fr 1fr; }
  tbody td { min-width: 30px; padding: 0 2px; } .card { padding: 10px; }
}
"""
