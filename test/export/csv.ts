/** A reader of RFC 4180 that shares nothing with what wrote it. */
export function readCsv(text: string): Record<string, string>[] {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = 0;
  while (at < text.length) {
    let cell = '';
    if (text[at] === '"') {
      for (at++; ; at++) {
        if (at >= text.length) throw new Error('A quoted cell has no end');
        if (text[at] !== '"') cell += text[at];
        else if (text[at + 1] === '"') {
          cell += '"';
          at++;
        } else break;
      }
      at++;
    } else {
      while (at < text.length && text[at] !== ',' && text[at] !== '\r') {
        if (text[at] === '"' || text[at] === '\n')
          throw new Error(`A bare ${JSON.stringify(text[at])} at ${at}`);
        cell += text[at++];
      }
    }
    row.push(cell);
    if (text[at] === ',') {
      at++;
      continue;
    }
    if (text.slice(at, at + 2) !== '\r\n') throw new Error(`No line end at ${at}`);
    at += 2;
    rows.push(row);
    row = [];
  }
  const [header = [], ...body] = rows;
  return body.map((cells) => {
    if (cells.length !== header.length) throw new Error(`${cells.length} cells under ${header.length} names`);
    return Object.fromEntries(header.map((name, index) => [name, cells[index] ?? '']));
  });
}
