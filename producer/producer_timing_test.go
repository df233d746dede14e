package producer

import "testing"

// BenchmarkSplit cuts records into chunks and makes their digests: all that the
// producer does with a record between reading and encoding it.
func BenchmarkSplit(b *testing.B) {
	for _, s := range shapes() {
		b.Run(s.name, func(b *testing.B) {
			records := s.corpus()
			split := newSplitter(testSpec(b))
			b.ReportAllocs()
			for b.Loop() {
				for i := range records {
					if !split.add(&records[i]) {
						split.take().Digest()
						split.add(&records[i])
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
		})
	}
}
