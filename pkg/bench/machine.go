package bench

import (
	"bufio"
	"os"
	"runtime"
	"strings"
)

// Machine is what must be known of a machine to compare its figures with those of
// another one.
type Machine struct {
	CPU     string `json:"cpu"` // as the system names it; empty where it does not
	Cores   int    `json:"cores"`
	Threads int    `json:"threads"` // that run Go at once
	System  string `json:"system"`
	Go      string `json:"go"`
}

// ThisMachine describes the machine that this is.
func ThisMachine() Machine {
	return Machine{
		CPU: cpuName(), Cores: runtime.NumCPU(), Threads: runtime.GOMAXPROCS(0),
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	}
}

// cpuName reads the name of the processor where Linux tells it.
func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "" // another system
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
