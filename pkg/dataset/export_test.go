package dataset

// Trap sets what is called at each step of each file.
func (d *Dir) Trap(trap func(step, file string)) { d.trap = trap }
