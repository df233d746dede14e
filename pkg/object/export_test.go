package object

import "time"

// Pause sets the pause before the third attempt at a byte.
func (c *Client) Pause(d time.Duration) { c.pause = d }
