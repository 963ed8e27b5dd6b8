/** Styles with colors that color-blind readers can distinguish. Only violations are red. */
export const STYLE: string = `
text{font:11px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#1b1f24}
.title{font-size:15px;font-weight:700}
.message{fill:#b3261e;font-weight:700}
.faint{fill:#59636e}
.lane{font-weight:700}
.line{stroke:#d1d9e0}
.grid{stroke:#eaeef2}
.stripe{fill:#f6f8fa}
.fault{fill:#f4a261;fill-opacity:.22}
.ok{fill:#cfe3f7;stroke:#2f6db3}
.no{fill:#e6e9ed;stroke:#768390}
.info{fill:#fff4cc;stroke:#9a7400;stroke-dasharray:4 3}
.lease{fill:#2f6db3;fill-opacity:.75}
.held{fill:#1a7f37;stroke:#fff}
.over{fill:#fff;stroke:#59636e}
.lost{stroke:#59636e;stroke-width:2}
.bad{stroke:#b3261e;stroke-width:2.5}
.lease.bad{fill:#b3261e;stroke:none;fill-opacity:.85}
.white{fill:#fff;font-weight:700}
.order{fill:#6e40c9;font-weight:700}
`
  .trim()
  .replaceAll("\n", "");
