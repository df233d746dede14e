// Package pb is the Go code generated from ../../flipmill.proto. Package wire
// wraps it; nobody else uses it.
package pb
