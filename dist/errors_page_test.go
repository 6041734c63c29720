package dist_test

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccl/goccl/dist"
)

// The page of errors has the types of package dist with all their fields.
func TestErrorsPage(t *testing.T) {
	fields := map[string]string{} // by type
	for _, e := range []error{
		new(dist.CallError), new(dist.CollectiveFailedError), new(dist.AbortedError), new(dist.PeerLostError), new(dist.TimeoutError),
		new(dist.MismatchError), new(dist.KernelPanicError), new(dist.ProtocolError), new(dist.RankError), new(dist.PanicError), new(dist.StuckError),
		new(dist.InvalidBufferSizeError), new(dist.InvalidRootError), new(dist.InvalidArgumentError), new(dist.AllocationFailedError),
		new(dist.UnfinishedError), new(dist.ObjectError), new(dist.InitializationFailedError), new(dist.ConfigError), new(dist.MissingConfigurationError),
		new(dist.InvalidBackendError), new(dist.BackendNotAvailableError),
	} {
		var names []string
		of := reflect.TypeOf(e).Elem()
		for f := range of.Fields() {
			if f.IsExported() {
				names = append(names, "`"+f.Name+"`")
			}
		}
		fields[of.Name()] = strings.Join(names, ", ")
	}
	fields["ConfigError"] = fields["Error"] // config.Error
	delete(fields, "Error")

	page, err := os.ReadFile("../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*?) \\|").FindAllStringSubmatch(string(page), -1) {
		rows[m[1]] = m[2]
	}
	if !maps.Equal(rows, fields) {
		t.Errorf("docs/reference/errors.md has\n%s\nwant\n%s", listed(rows), listed(fields))
	}

	for _, file := range []string{"errors.go", "object.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^(?:type|\t)\s*([A-Z]\w+Error)\s+(?:= |struct)`).FindAllStringSubmatch(string(source), -1) {
			if fields[m[1]] == "" {
				t.Errorf("dist.%s is not checked", m[1])
			}
		}
	}
}

func listed(rows map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&b, "%s: %s\n", name, rows[name])
	}
	return b.String()
}
