package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// variables is an environment.
func variables(v map[string]string) func(string) string {
	return func(name string) string { return v[name] }
}

// An option overrides the environment, the environment the file, and the file the default, for
// each value by itself; each value names its origin.
func TestPrecedence(t *testing.T) {
	const file = `version: 1
defaults: {algorithm: plain, transport: shm, timeout: 10s, world_size: 3}
algorithms: {plain: {module: plain}, other: {module: plain}, fixed: {module: plain, world_size: 5}}
`
	none, all := map[string]string{"GOCCL_TIMEOUT": ""}, map[string]string{
		"GOCCL_ALGORITHM": "other", "GOCCL_TRANSPORT": "local", "GOCCL_TIMEOUT": "20s", "GOCCL_WORLD_SIZE": "4", "GOCCL_DEBUG": "true",
	}
	options := Request{Algorithm: "fixed", Transport: "auto", Timeout: 30 * time.Second, Ranks: 5}
	type values = map[string]Setting
	for _, c := range []struct {
		name    string
		file    string
		env     map[string]string
		request Request
		want    values
	}{
		{"default", "version: 1\nalgorithms: {plain: {module: plain}}\nrules: [{algorithm: plain}]\n", none, Request{Ranks: 2, RanksFrom: "somebody"}, values{
			"defaults.algorithm": {Value: "auto", Origin: "default"},
			"defaults.transport": {Value: "auto", Origin: "default"},
			"defaults.timeout":   {Value: "1m0s", Origin: "default"},
			"world_size":         {Value: "2", Origin: "somebody"},
		}},
		{"file", file, none, Request{Ranks: 3}, values{
			"defaults.algorithm": {Value: "plain", Origin: "ccl.yaml:2"},
			"defaults.transport": {Value: "shm", Origin: "ccl.yaml:2"},
			"defaults.timeout":   {Value: "10s", Origin: "ccl.yaml:2"},
			"world_size":         {Value: "3", Origin: "ccl.yaml:2 (defaults.world_size)"},
		}},
		{"environment", file, all, Request{Ranks: 4}, values{
			"defaults.algorithm": {Value: "other", Origin: "GOCCL_ALGORITHM"},
			"defaults.transport": {Value: "local", Origin: "GOCCL_TRANSPORT"},
			"defaults.timeout":   {Value: "20s", Origin: "GOCCL_TIMEOUT"},
			"defaults.debug":     {Value: "true", Origin: "GOCCL_DEBUG"},
			"world_size":         {Value: "4", Origin: "GOCCL_WORLD_SIZE"},
		}},
		{"one variable", file, map[string]string{"GOCCL_TIMEOUT": "none"}, Request{Ranks: 3}, values{
			"defaults.algorithm": {Value: "plain", Origin: "ccl.yaml:2"},
			"defaults.timeout":   {Value: "none", Origin: "GOCCL_TIMEOUT"},
			"world_size":         {Value: "3", Origin: "ccl.yaml:2 (defaults.world_size)"},
		}},
		{"option", file, all, options, values{
			"defaults.algorithm": {Value: "fixed", Origin: "option"},
			"defaults.transport": {Value: "auto", Origin: "option"},
			"defaults.timeout":   {Value: "30s", Origin: "option"},
			"world_size":         {Value: "5", Origin: "ccl.yaml:3 (algorithms.fixed.world_size)"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := parse(t, c.file)
			config, err := before.WithEnvironment(variables(c.env))
			require.NoError(t, err)
			require.Equal(t, parse(t, c.file), before, "the configuration itself is not changed")
			c.request.Registry = testRegistry()
			s, err := config.Resolve(c.request)
			require.NoError(t, err)
			found := 0
			for _, v := range s.Values() {
				if want, ok := c.want[v.Key]; ok {
					found++
					want.Key = v.Key
					require.Equal(t, want, v)
				}
			}
			require.Equal(t, len(c.want), found)
			n, origin, ok := config.WorldSize("")
			if c.name == "environment" || c.name == "option" {
				require.Equal(t, []any{4, "GOCCL_WORLD_SIZE", true}, []any{n, origin, ok})
			}
		})
	}
}

// A choice by the environment names the variable.
func TestChosenByEnvironment(t *testing.T) {
	config, err := parse(t, selection).WithEnvironment(variables(map[string]string{"GOCCL_ALGORITHM": "plain"}))
	require.NoError(t, err)
	s, err := config.Resolve(Request{Registry: testRegistry(), Ranks: 4})
	require.NoError(t, err)
	choice, err := s.Choose(ccl.Shape{Collective: ccl.CollBroadcast, Ranks: 4}, "")
	require.NoError(t, err)
	require.Equal(t, "GOCCL_ALGORITHM", choice.Why)
}

func TestWrongEnvironment(t *testing.T) {
	for _, c := range []struct{ variable, value, want string }{
		{"GOCCL_TIMEOUT", "60", `environment: GOCCL_TIMEOUT: want a duration with its unit, such as 500ms, 60s or 5m, or none; got the text "60"`},
		{"GOCCL_TIMEOUT", "-1s", `environment: GOCCL_TIMEOUT: "-1s" is not more than zero; write none to wait for ever`},
		{"GOCCL_WORLD_SIZE", "four", `environment: GOCCL_WORLD_SIZE: "four" is not a number of ranks`},
		{"GOCCL_WORLD_SIZE", "010", `environment: GOCCL_WORLD_SIZE: "010" is not a number of ranks`},
		{"GOCCL_WORLD_SIZE", "0", `environment: GOCCL_WORLD_SIZE: "0" is out of range: from 1 to 65536 ranks are allowed`},
		{"GOCCL_DEBUG", "maybe", `environment: GOCCL_DEBUG: "maybe" is neither true nor false`},
		{"GOCCL_ALGORITHM", "plian", `ccl.yaml: defaults.algorithm (GOCCL_ALGORITHM): there is no entry "plian" in algorithms (did you mean plain?); entries: plain, fancy, small, sized`},
		{"GOCCL_TRANSPORT", "udp", `ccl.yaml: defaults.transport (GOCCL_TRANSPORT): unknown transport "udp"; use one of auto, shm, local`},
		{"GOCCL_WORLD_SIZE", "2", "the world size is 2 by GOCCL_WORLD_SIZE, but the number of ranks is 4; start 2 ranks, or set GOCCL_WORLD_SIZE to 4"},
	} {
		config, err := parse(t, selection).WithEnvironment(variables(map[string]string{c.variable: c.value}))
		if err == nil {
			_, err = config.Resolve(Request{Registry: testRegistry(), Ranks: 4})
		}
		require.ErrorContains(t, err, c.want)
	}
}

// Find heeds the environment, whatever file it finds.
func TestFindHeedsEnvironment(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOCCL_CONFIG", "")
	t.Setenv("GOCCL_WORLD_SIZE", "7")
	c, err := Find()
	require.NoError(t, err)
	n, origin, ok := c.WorldSize("")
	require.Equal(t, []any{7, "GOCCL_WORLD_SIZE", true}, []any{n, origin, ok})
	t.Setenv("GOCCL_TIMEOUT", "soon")
	_, err = Find()
	require.ErrorAs(t, err, new(*Error))
}

func TestUnknownVariables(t *testing.T) {
	require.NoError(t, CheckEnvironment([]string{"PATH=/bin", "GOCCL_ALGORITHM=ring", "GOCCL_SHM_RANK=1", "GOCCL_ERROR_FILE=/e", "GOCCLX=1", "GOCCL_NONE=", "CCL_X=1"}))
	for name, nearest := range map[string]string{
		"GOCCL_ALGORTHM":  " (did you mean GOCCL_ALGORITHM?)",
		"GOCCL_WORLDSIZE": " (did you mean GOCCL_WORLD_SIZE?)",
		"GOCCL_algorithm": " (did you mean GOCCL_ALGORITHM?)",
		"GOCCL_SHM_RNAK":  " (did you mean GOCCL_SHM_RANK?)",
		"GOCCL_COLOURS":   "",
		"goccl_timeout":   " (did you mean GOCCL_TIMEOUT?)",
		"Goccl_Timeout":   " (did you mean GOCCL_TIMEOUT?)",
		"goccl_colours":   "",
		"GOCL_TIMEOUT":    " (did you mean GOCCL_TIMEOUT?)",
		"GOCCLTIMEOUT":    " (did you mean GOCCL_TIMEOUT?)",
		"GOCCL-TIMEOUT":   " (did you mean GOCCL_TIMEOUT?)",
		"GOCCC_LOG":       " (did you mean GOCCL_LOG?)",
	} {
		err := CheckEnvironment([]string{"GOCCL_DEBUG=1", name + "=x=y"})
		require.EqualError(t, err, "environment: "+name+": goccl has no such variable"+nearest+"; it has GOCCL_ALGORITHM, GOCCL_CONFIG, "+
			"GOCCL_DEBUG, GOCCL_LOG, GOCCL_TIMEOUT, GOCCL_TRANSPORT, GOCCL_WORLD_SIZE, GOCCL_SHM_NAME, GOCCL_SHM_RANK, GOCCL_SHM_SECRET, GOCCL_SHM_SIZE, "+
			"GOCCL_ERROR_FILE, GOCCL_RESULT_FILE, GOCCL_SECRET, GOCCL_SECRET_FILE, GOCCL_TLS_DIR, GOCCL_INTERFACE, GOCCL_NODES, GOCCL_RESTART, GOCCL_MPI_LIBRARY, GOCCL_FLIGHT, GOCCL_FLIGHT_TIMES, GOCCL_FLIGHT_END, GOCCL_METRICS, GOCCL_WATCH_LAUNCHER; correct or unset it")
		require.ErrorAs(t, err, new(*Error))
	}

	var all Errors
	err := CheckEnvironment([]string{"GOCCL_zzz=1", "GOCCL_LOGG=info", "GOCCL_DEBUG=1"})
	require.ErrorAs(t, err, &all)
	require.Len(t, all, 2)
	require.Equal(t, []string{"GOCCL_LOGG", "GOCCL_zzz"}, []string{all[0].Key, all[1].Key})
	require.ErrorContains(t, err, "environment has 2 mistakes:\nenvironment: GOCCL_LOGG: goccl has no such variable (did you mean GOCCL_LOG?); it has ")
	require.ErrorContains(t, err, "\nenvironment: GOCCL_zzz: goccl has no such variable; correct or unset it")
}

// The table of variables is the one that there is: it has all names that stand in the
// module's programs, and no other.
func TestTableOfVariables(t *testing.T) {
	names := regexp.MustCompile(`\bGOCCL_[A-Z_]*[A-Z]\b`)
	var found []string
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		others, table, _ := strings.Cut(string(text), "var knownVariables = ")
		_, below, _ := strings.Cut(table, "}\n")
		found = append(found, names.FindAllString(others+below, -1)...)
		return err
	}))
	slices.Sort(found)
	require.ElementsMatch(t, knownVariables, slices.Compact(found))
}
