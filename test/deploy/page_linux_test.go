package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/goccl/goccl/internal/launchenv"
)

const root = "../../"

// excerpt is a block of a page that is a part of a file.
var excerpt = regexp.MustCompile("(?s)<!-- in (examples/deploy/\\S+) -->\n+```\\w+\n(.*?)```")

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(root + file)
	require.NoError(t, err)
	return string(text)
}

// TestDeployPage finds the blocks of docs/guides/deploy.md in the files that they are of, and has goccl
// judge its commands: without a secret, goccl run refuses what it would start.
func TestDeployPage(t *testing.T) {
	goccl := filepath.Join(t.TempDir(), "goccl")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", goccl, root+"examples/deploy/goccl").CombinedOutput()
	require.NoError(t, err, string(out))
	excerpts, commands := 0, 0
	page := read(t, "docs/guides/deploy.md")
	texts := page + read(t, "examples/deploy/train@.service")
	for _, m := range excerpt.FindAllStringSubmatch(page, -1) {
		excerpts++
		require.Contains(t, read(t, m[1]), m[2], m[1])
	}
	require.Equal(t, 4, excerpts)

	for _, m := range regexp.MustCompile(`goccl (run --nnodes [^#\n`+"`"+`]*)`).FindAllStringSubmatch(texts, -1) {
		commands++
		line := strings.NewReplacer("%i", "1", "$(NODE_RANK)", "1").Replace(m[1])
		c := exec.CommandContext(t.Context(), goccl, strings.Fields(line)...)
		c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOCCL_") })
		out, err := c.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "--nnodes: without a secret", line)
	}
	require.GreaterOrEqual(t, commands, 4)
}

// manifest is what a job in Kubernetes has, as far as it has to fit together.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		ClusterIP                string `yaml:"clusterIP"`
		Selector                 map[string]string
		CompletionMode           string `yaml:"completionMode"`
		Completions, Parallelism int
		PublishNotReady          bool `yaml:"publishNotReadyAddresses"`
		Template                 struct {
			Spec struct {
				Subdomain  string
				Containers []struct {
					Command       []string
					Args          []string
					Env           []struct{ Name, Value string }
					LivenessProbe struct{ Exec struct{ Command []string } } `yaml:"livenessProbe"`
					VolumeMounts  []struct {
						Name string
						Path string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct{ Name string }
			}
		}
	}
}

// variables returns those of the pod with an index.
func (m *manifest) variables(index int) map[string]string {
	v := map[string]string{}
	for _, e := range m.Spec.Template.Spec.Containers[0].Env {
		if v[e.Name] = e.Value; e.Name == "RANK" {
			v[e.Name] = fmt.Sprint(index)
		}
	}
	return v
}

// readManifests returns the service and the job of examples/deploy/job.yaml.
func readManifests(t *testing.T) (service, job manifest) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader([]byte(read(t, "examples/deploy/job.yaml"))))
	require.NoError(t, d.Decode(&service))
	require.NoError(t, d.Decode(&job))
	require.True(t, errors.Is(d.Decode(new(manifest)), io.EOF))
	return service, job
}

// TestDeployJob compares the parts of examples/deploy/job.yaml: the pods are ranks of one job, which
// finds its first rank by the service.
func TestDeployJob(t *testing.T) {
	service, job := readManifests(t)
	pod := job.Spec.Template.Spec
	require.Equal(t, []string{"Service", "Job", "Indexed", "None"}, []string{service.Kind, job.Kind, job.Spec.CompletionMode, service.Spec.ClusterIP})
	require.True(t, service.Spec.PublishNotReady)
	require.Equal(t, map[string]string{"job-name": job.Metadata.Name}, service.Spec.Selector)
	require.Equal(t, service.Metadata.Name, pod.Subdomain)
	require.Equal(t, job.Spec.Completions, job.Spec.Parallelism)
	for i, mount := range pod.Containers[0].VolumeMounts {
		require.Equal(t, mount.Name, pod.Volumes[i].Name)
	}

	for rank := range job.Spec.Completions {
		v := job.variables(rank)
		require.Equal(t, job.Metadata.Name+"-0."+pod.Subdomain, v["MASTER_ADDR"])
		require.Equal(t, pod.Containers[0].VolumeMounts[0].Path, filepath.Dir(v["GOCCL_SECRET_FILE"]))
		delete(v, "GOCCL_SECRET_FILE") // which only pods have
		v["GOCCL_SECRET"] = "known to all of them"
		j, err := launchenv.Detect(func(name string) string { return v[name] })
		require.NoError(t, err)
		require.Equal(t, []int{rank, job.Spec.Completions}, []int{j.Rank, j.Size})
		require.NotEmpty(t, j.Apart)
	}
}

// TestDeployFiles looks at what neither Docker nor Slurm reads here: the packages that the Dockerfile
// builds exist, and the batch script is one.
func TestDeployFiles(t *testing.T) {
	builds := regexp.MustCompile(`(?m)^RUN CGO_ENABLED=0 go build .* -o /out/\w+ (\S+)$`).FindAllStringSubmatch(read(t, "examples/deploy/Dockerfile"), -1)
	require.Len(t, builds, 2)
	for _, b := range builds {
		require.FileExists(t, filepath.Join(root, b[1], "main.go"))
	}
	out, err := exec.Command("/bin/sh", "-n", root+"examples/deploy/train.sbatch").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, read(t, "examples/deploy/train.sbatch"), "\nexport MASTER_ADDR MASTER_PORT GOCCL_SECRET\n")
}
