// Package cores tells on which cores ranks run.
//
// # Model
//
// The list of a rank is what the system allows its process, which goccl run may have pinned.
package cores

import (
	"os"
	"strings"

	"github.com/goccl/goccl/dist"
)

// OfRanks returns the cores that each rank may use, "0|1", or "" if the system does not show them. All ranks call it.
func OfRanks() (string, error) {
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
