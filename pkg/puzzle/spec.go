package puzzle

// Spec is what a job asks for: everything besides the corpus that its dataset
// is a function of. Two jobs with equal specs and equal corpora have
// byte-identical datasets. The zero value of a field stands for its default
// only where a package that reads it says so; command lines fill every field.
type Spec struct {
	Rule        Rule
	Target      Target
	SearchLimit int64    // most candidates enumerated for one board; beyond, its row says unproven
	Columns     []string // result columns, in schema order
	Cells       string   // how boards and solutions are stored: text or bits
	Compression string   // Parquet codec: zstd, snappy or none
	PartChunks  int      // chunks in one part
	Generate    Generate // boards that are made rather than read; then what follows, but for the size, is zero
	Format      string   // corpus format
	Size        Size     // size of every board; zero where the corpus shows it
	Symbols     Symbols  // characters of the corpus's cells
	Frame       Frame    // what a judge's input has around its boards
	ColumnMajor bool     // cells that are not in rows are column by column
	Fields      Fields   // names in a corpus that has named fields
	Keep        []string // columns of the corpus that the results keep, besides its id
	MaxLine     int      // bytes of the longest line that is read; a longer one is rejected
}
