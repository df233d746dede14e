package generate

// golden is the step of SplitMix64: 2^64 divided by the golden ratio, made odd.
const golden = 0x9e3779b97f4a7c15

// word returns number n, from 0 on, of the random words of a seed.
//
// Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators
// (2014): output n of SplitMix64 with the seed as its state. It is a hash of a
// counter, so that any number of a sequence costs the same, and a bijection of n,
// so that no word comes twice.
func word(seed, n uint64) uint64 {
	z := seed + (n+1)*golden
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// bitSource gives out the bits of consecutive random words, the highest first.
type bitSource struct {
	seed, next uint64 // number of the next word
	word       uint64 // the bits that are left of the last one, at the top; 0 below
	left       int
}

// take returns the next 1 to 16 bits.
func (b *bitSource) take(n int) uint16 {
	if b.left >= n {
		bits := b.word >> (64 - n)
		b.word, b.left = b.word<<n, b.left-n
		return uint16(bits)
	}
	missing := n - b.left
	bits := b.word >> (64 - n) // zeros where bits are missing
	b.word, b.left = word(b.seed, b.next), 64
	b.next++
	return uint16(bits) | b.take(missing)
}

// rounds of the permutation. Four make a Feistel network hard to tell from a random
// permutation where its rounds are as good as random and its halves large (Luby and
// Rackoff 1988); the halves of small boards are not.
const rounds = 8

// permute returns the number of bits, from 1 to 63, that a permutation of all such
// numbers has for x.
//
// Source: Feistel's network, with halves that need not be equal: the upper half of
// an odd number of bits is the shorter one. Each round changes one half by a random
// word that the other one chooses, which the same round undoes, so that the whole
// is a bijection whatever the words are; no walk along cycles is needed.
func permute(seed uint64, n int, x uint64) uint64 {
	low := (n + 1) / 2
	high := n - low
	left, right := x>>low, x&(1<<low-1)
	for r := uint64(0); r < rounds; r += 2 {
		left ^= word(seed, r<<32|right) >> 1 >> (63 - high) // two shifts because high may be 0
		right ^= word(seed, (r+1)<<32|left) >> (64 - low)
	}
	return left<<low | right
}
