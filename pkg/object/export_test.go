package object

import "time"

// Hurry makes the pauses between attempts at a byte short.
func (c *Client) Hurry() { c.pause = time.Microsecond }
