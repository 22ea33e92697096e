"""The style sheet of a page: light and dark, wide and narrow, screen and paper."""

STYLE = """
:root { color-scheme: light dark; --paper: #f4f6f9; --surface: #ffffff; --ink: #1d2330;
  --soft: #566074; --line: #e1e5ec; --code: #f2f4f8; --accent: #b0123a; --blue: #1f5fa8;
  --good: #0b7a55; --bad: #a8470a; --note: #fff6e5; --note-line: #e8b04b; }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #10131a; --surface: #191e28; --ink: #e7eaf0; --soft: #a7b0c0;
    --line: #2d3442; --code: #11151d; --accent: #ff8da3; --blue: #7db8f0; --good: #4fd1a1;
    --bad: #f5a35c; --note: #2b2416; --note-line: #b98a35; }
  main .light { display: none; }
  main .dark { display: block; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial,
  "Liberation Sans", sans-serif; overflow-wrap: anywhere; }
main { max-width: 72rem; margin: 0 auto; padding: 2.75rem 1.5rem 3rem; }
.kind { color: var(--accent); font-size: .8rem; font-weight: 600; letter-spacing: .08em;
  text-transform: uppercase; margin: 0 0 .4rem; }
h1 { font-size: 2.1rem; line-height: 1.15; letter-spacing: -.015em; margin: 0 0 .7rem; }
h2 { font-size: 1.4rem; line-height: 1.25; letter-spacing: -.01em; margin: 2.75rem 0 .35rem; }
h3, .panel > h2, .words > h2 { font-size: 1.06rem; line-height: 1.3; letter-spacing: 0;
  margin: 0 0 .35rem; }
.lead { font-size: 1.12rem; color: var(--soft); margin: 0 0 1.6rem; max-width: 52rem; }
.about { color: var(--soft); margin: 0 0 1rem; max-width: 52rem; }
nav { display: flex; flex-wrap: wrap; gap: .35rem 1.4rem; font-size: .92rem;
  margin: 1.5rem 0 0; border-top: 1px solid var(--line); padding-top: .9rem; }
nav.book { display: grid; gap: 1.2rem 2.5rem; font-size: .97rem; margin-top: 2rem;
  padding-top: 1.4rem; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); }
nav.book ul { list-style: none; margin: 0; padding: 0; }
nav.book li { display: flex; justify-content: space-between; align-items: baseline; gap: 1rem;
  padding: .38rem 0; border-bottom: 1px solid var(--line); }
.mark { flex: none; font-size: .78rem; font-weight: 600; letter-spacing: 0; line-height: 1.5;
  padding: .1rem .55rem; border-radius: 1rem; border: 1px solid var(--line);
  color: var(--soft); background: var(--surface); white-space: nowrap; vertical-align: middle; }
.mark.good { color: var(--good); border-color: currentColor; }
.mark.bad { color: var(--bad); border-color: currentColor; }
section > .kind { margin: 3.5rem 0 0; }
section > .kind + h2 { margin-top: .3rem; }
.back { font-size: .88rem; margin: 1rem 0 0; text-align: right; }
a { color: var(--blue); text-decoration: none; }
a:hover, a:focus { text-decoration: underline; }
.cards { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(9.8rem, 45%), 1fr)); }
.card, .panel { background: var(--surface); border: 1px solid var(--line);
  border-radius: .7rem; min-width: 0; }
.card { padding: 1rem 1.2rem 1.05rem; }
.card b { display: block; font-size: 1.75rem; line-height: 1.2; letter-spacing: -.015em;
  font-variant-numeric: tabular-nums; }
.card span { display: block; color: var(--soft); font-size: .9rem; line-height: 1.4;
  margin-top: .2rem; }
.card.good b { color: var(--good); }
.card.bad b { color: var(--bad); }
.warnings { background: var(--note); border: 1px solid var(--note-line);
  border-left-width: .35rem; border-radius: .5rem; padding: .9rem 1.2rem; margin: 0 0 1.4rem; }
.warnings h2 { font-size: 1.02rem; margin: 0 0 .3rem; letter-spacing: 0; }
.warnings ul, .panel ul { margin: 0; padding-left: 1.15rem; }
.panel li + li, .warnings li + li { margin-top: .25rem; }
.panels { display: grid; gap: 1rem; margin-top: 1rem;
  grid-template-columns: repeat(2, minmax(0, 1fr)); }
.row { display: contents; }
.panel { padding: 1.15rem 1.35rem 1.25rem; display: flex; flex-direction: column; }
.panel > .light, .panel > .dark { margin-top: auto; }
.panel.wide, .panel.side { grid-column: 1 / -1; }
.panel.side { display: grid; gap: 0 2rem; align-items: center;
  grid-template-columns: repeat(2, minmax(0, 1fr)); }
.panel p { margin: 0 0 .8rem; color: var(--soft); font-size: .95rem; }
.panel p:last-child { margin-bottom: 0; }
.panel .more { margin: .7rem 0 0; font-size: .9rem; }
.scroll { overflow-x: auto; }
.scroll:focus-visible { outline: 2px solid var(--blue); outline-offset: 2px; }
img { display: block; }
.dark { display: none; }
img { width: 100%; height: auto; }
.dense img { min-width: 34rem; max-width: 46rem; margin: 0 auto; }
.columns { display: grid; gap: 0 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); align-items: start; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; line-height: 1.4;
  font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .4rem .9rem .4rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: break-word; }
.facts th, .facts td { overflow-wrap: anywhere; }
th:last-child, td:last-child { padding-right: 0; }
tbody tr:last-child > * { border-bottom: 0; }
thead th { color: var(--soft); font-weight: 600; font-size: .85rem; white-space: nowrap; }
tbody th { font-weight: 500; }
.n { text-align: right; white-space: nowrap; }
.facts th { color: var(--soft); font-weight: 400; width: 38%; }
.facts td { font-weight: 500; }
.chosen > * { font-weight: 600; color: var(--accent); }
.chosen > th::before { content: "★ "; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: .45rem;
  padding: .9rem 1.1rem; overflow-x: auto; margin: 0; overflow-wrap: normal;
  font: .87rem/1.55 ui-monospace, SFMono-Regular, Consolas, Menlo, "Liberation Mono",
  monospace; }
footer { color: var(--soft); font-size: .88rem; margin-top: 2.5rem; }
@media (max-width: 52rem) {
  main { padding: 1.6rem 1rem 2rem; }
  h1 { font-size: 1.6rem; }
  .panels { grid-template-columns: minmax(0, 1fr); }
  .panel { padding: 1rem; }
  .panel.side { display: block; }
  table.many { min-width: 42rem; }
  .columns table + table thead { display: none; }
  .columns table:not(:last-child) tr > * { border-bottom: 1px solid var(--line); }
  .cards { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .75rem; }
  .card { padding: .8rem .9rem; }
  .card b { font-size: 1.35rem; }
}
@page { size: A4; margin: 14mm 13mm 16mm; }
@media print {
  :root { color-scheme: light; --paper: #ffffff; }
  html, body { font-size: 9pt; }
  th, td { padding-top: .25rem; padding-bottom: .25rem; }
  body { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { max-width: none; padding: 0; }
  nav:not(.book), .back { display: none; }
  .panels { display: block; }
  .row { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .9rem;
    break-inside: avoid; margin-top: .9rem; }
  .cards { grid-template-columns: repeat(4, minmax(0, 1fr)); gap: .7rem; }
  .cards.threes { grid-template-columns: repeat(3, minmax(0, 1fr)); }
  .card b { font-size: 1.3rem; }
  .card, .warnings, .panel, tr, img, pre { break-inside: avoid; }
  .panel { padding: .8rem .95rem .9rem; margin-bottom: 0; }
  .panel.long { break-inside: auto; display: block; }
  .panel.wide, .panel.side { margin-top: .9rem; }
  .panel.side { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); }
  h1, h2, h3, .about, thead { break-after: avoid; }
  .side h2, .side h3 { break-after: auto; }
  h2 { margin-top: 1.6rem; }
  thead { display: table-header-group; }
  .scroll, pre { overflow: visible; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  .dense img { min-width: 0; max-width: 100%; }
  a { color: inherit; }
}
"""
