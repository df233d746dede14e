package generate

// DrawFromTail has boards chosen by their moves drawn from the tail, where tries as
// of other boards would do as well.
func (g *Generator) DrawFromTail() error { return g.setTail() }
