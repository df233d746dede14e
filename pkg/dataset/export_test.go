package dataset

// Trap sets what is called at each step of each file.
func (d *Dir) Trap(trap func(step, file string)) { d.trap = trap }

// SpoilExtra makes the last value of an extra column in each run another one.
func (e *Encoder) SpoilExtra(column string) {
	for _, l := range e.extras.columns[column] {
		right := l.fill
		l.fill = func(x *extras, l *leaf, b *batch) error {
			err := right(x, l, b)
			if n := len(l.number) - 1; n >= 0 && len(l.named) < 2 {
				l.number[n] ^= 1
			} else if n >= 0 {
				l.number[n] = (l.number[n] + 1) % int32(len(l.named))
			} else {
				l.text.data[len(l.text.data)-1] ^= 1
			}
			return err
		}
	}
}

// CompactTrapped is Compact with a trap.
func CompactTrapped(path string, partChunks int, trap func(step, file string)) error {
	_, _, err := compact(path, &compaction{partChunks: partChunks, trap: trap})
	return err
}
