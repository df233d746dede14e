// Reads Parquet files with hyparquet and Polars. Standard input has a line for each
// file: {"file": name, "arrow": name}. What hyparquet finds goes to standard output, a
// line for each file, with the sums that readers_test.go explains; what Polars finds
// goes to the file "arrow", because its values do not all come through to JavaScript.
import { createHash } from 'node:crypto'
import { createInterface } from 'node:readline'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import pl from 'nodejs-polars'

const text = new TextEncoder()

// write adds a value to a sum.
function write(sum, v) {
  if (v === null || v === undefined) sum.update('null\n')
  else if (typeof v === 'string') {
    const bytes = text.encode(v)
    sum.update(`text ${bytes.length} `).update(bytes).update('\n')
  } else if (v instanceof Uint8Array) sum.update(`bytes ${v.length} `).update(v).update('\n')
  else if (Array.isArray(v)) {
    sum.update(`list ${v.length}\n`)
    for (const x of v) write(sum, x)
  } else if (typeof v === 'object') {
    for (const name of Object.keys(v).sort()) {
      sum.update(`field ${name}\n`)
      write(sum, v[name])
    }
  } else if (typeof v === 'number' && !Number.isInteger(v)) {
    const bits = new DataView(new ArrayBuffer(8))
    bits.setFloat64(0, v)
    sum.update(`${bits.getBigUint64(0).toString(16).padStart(16, '0')}\n`)
  } else sum.update(`${v}\n`)
}

for await (const line of createInterface({ input: process.stdin })) {
  const { file, arrow } = JSON.parse(line)
  const buffer = await asyncBufferFromFile(file)
  const metadata = await parquetMetadataAsync(buffer)
  const rows = await parquetReadObjects({ file: buffer, metadata, compressors, utf8: false })
  const columns = columnNames(metadata.schema).map(name => {
    const sum = createHash('sha256')
    let nulls = 0
    for (const row of rows) {
      if (row[name] === null || row[name] === undefined) nulls++
      write(sum, row[name])
    }
    return { name, rows: rows.length, nulls, sum: sum.digest('hex') }
  })
  console.log(JSON.stringify(columns))
  pl.readParquet(file).writeIPC(arrow)
}

// columnNames returns the top-level columns of a schema, which is a tree in depth-first order.
function columnNames(schema) {
  const names = []
  let next = 1
  const pass = () => { // over one subtree
    const n = schema[next++].num_children ?? 0
    for (let i = 0; i < n; i++) pass()
  }
  for (let i = 0; i < schema[0].num_children; i++) {
    names.push(schema[next].name)
    pass()
  }
  return names
}
