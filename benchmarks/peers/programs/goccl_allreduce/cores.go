package main

import (
	"os"
	"strings"

	"github.com/goccl/goccl/dist"
)

// cores returns the cores that each rank may use, "0|1", or "" if the system does not show them.
func cores() (string, error) {
	own := ""
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		_, after, _ := strings.Cut(string(status), "\nCpus_allowed_list:")
		own, _, _ = strings.Cut(strings.TrimSpace(after), "\n")
	}
	all, err := dist.AllGatherObject(own)
	if err != nil || own == "" {
		return "", err
	}
	return strings.Join(all, "|"), nil
}
