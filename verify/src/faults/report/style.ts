/** The styles of the page, with the pictures' colors, for light and dark. Only violations are red. */
export const STYLE: string = `
:root{color-scheme:light dark;--ground:#fff;--ink:#1b1f24;--faint:#59636e;--line:#d1d9e0;--stripe:#f6f8fa;
--ok:#cfe3f7;--shown:#dcd3f4;--reported:#e6e9ed;--warn:#fff4cc;--bad:#f3c0bb;--bad-ink:#b3261e;--link:#2f6db3}
@media(prefers-color-scheme:dark){:root{--ground:#14181d;--ink:#e3e8ee;--faint:#98a3af;--line:#38414b;--stripe:#1c2229;
--ok:#1d3f63;--shown:#3d2f66;--reported:#333b44;--warn:#54460f;--bad:#6b1f19;--bad-ink:#ff8f85;--link:#79b3ee}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1280px;padding:24px;background:var(--ground);color:var(--ink);
font:14px/1.5 system-ui,"DejaVu Sans",Arial,sans-serif}
h1{font-size:22px;margin:0 0 4px}h2{font-size:17px;margin:32px 0 8px}h3{font-size:14px;margin:16px 0 4px}
p{max-width:90ch}.faint{color:var(--faint)}a{color:var(--link)}
code,pre,.id{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;font-size:12.5px}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--stripe);padding:8px;border-radius:4px}
.wide{overflow-x:auto}
table{border-collapse:collapse}th,td{border:1px solid var(--line);padding:3px 8px;text-align:left;vertical-align:top}
th{background:var(--stripe);font-weight:600}
.figures{display:flex;flex-wrap:wrap;gap:8px;margin:16px 0;padding:0;list-style:none}
.figures li{border:1px solid var(--line);border-radius:6px;padding:6px 12px;min-width:100px}
.figures b{display:block;font-size:19px;font-variant-numeric:tabular-nums}
.mark{display:inline-block;padding:0 5px;margin:1px;border-radius:3px;color:inherit;text-decoration:none}
.ok{background:var(--ok)}.shown{background:var(--shown)}.reported{background:var(--reported)}
.toothless,.void,.unknown,.unavailable{background:var(--warn)}
.violation{background:var(--bad);font-weight:700}
.unrun{color:var(--faint);border:1px dashed var(--line)}
.breach{color:var(--bad-ink);margin:4px 0}.wanted{margin:4px 0}
details{border:1px solid var(--line);border-radius:6px;margin:6px 0;padding:4px 10px}
summary{cursor:pointer}summary .id{display:inline-block;min-width:150px}
img{max-width:100%;height:auto;border:1px solid var(--line);border-radius:4px;background:#fff}
`.trim();
