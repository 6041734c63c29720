package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// describeMachine describes the machine, and its load before the run.
func describeMachine() string {
	cores, processors := cores()
	text := fmt.Sprintf("%d cores", cores)
	if processors != cores {
		text += fmt.Sprintf(" (%d processors)", processors)
	}

	if model := field("/proc/cpuinfo", "model name"); model != "" {
		text += ", " + model
	}
	text += fmt.Sprintf(", %s/%s, %s", runtime.GOOS, runtime.GOARCH, runtime.Version())
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		last, _, _ := strings.Cut(string(load), " ")
		text += ", load " + last + " before the start"
	}
	return text
}

// field returns the value of the first line "name : value" of a file.
func field(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
