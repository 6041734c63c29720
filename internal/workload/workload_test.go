package workload

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The parameters are those of the published networks: of torchvision's documentation, which also has 4.09 and 15.47
// thousand million operations of resnet50 and vgg16, and of Hugging Face's BertModel and GPT2Model.
func TestTotals(t *testing.T) {
	for name, want := range map[string]struct {
		elements, tensors int
		operations        int64
	}{
		"lenet5":     {61_706, 10, 416_520},
		"resnet50":   {25_557_032, 161, 4_089_184_256},
		"vgg16":      {138_357_544, 32, 15_470_264_320},
		"bert_base":  {109_482_240, 199, 11_174_215_680},
		"gpt2_small": {124_439_808, 148, 145_824_153_600},
	} {
		w, err := Named(name)
		require.NoError(t, err)
		require.Equal(t, want.elements, w.Elements(), name)
		require.Len(t, w.Parameters(), want.tensors, name)
		require.Equal(t, want.operations, w.Operations(), name)
		require.NotEmpty(t, w.Source)
		names := map[string]bool{}
		for _, p := range w.Parameters() {
			require.False(t, names[p.Name], "%s: %s is there twice", name, p.Name)
			require.Positive(t, p.Elements(), p.Name)
			names[p.Name] = true
		}
	}
	require.Len(t, Names(), 5)
}

func TestShapes(t *testing.T) {
	shape := func(workload, parameter string) []int {
		w, err := Named(workload)
		require.NoError(t, err)
		for _, p := range w.Parameters() {
			if p.Name == parameter {
				return p.Shape
			}
		}
		return nil
	}
	require.Equal(t, []int{512, 1024, 1, 1}, shape("resnet50", "layer4.0.conv1.weight"))
	require.Equal(t, []int{2048, 1024, 1, 1}, shape("resnet50", "layer4.0.downsample.0.weight"))
	require.Equal(t, []int{512, 512, 3, 3}, shape("vgg16", "features.28.weight"))
	require.Equal(t, []int{4096, 25088}, shape("vgg16", "classifier.0.weight"))
	require.Equal(t, []int{3072}, shape("bert_base", "encoder.layer.11.intermediate.dense.bias"))
	require.Equal(t, []int{768, 2304}, shape("gpt2_small", "h.11.attn.c_attn.weight"))
}

func TestUnknownName(t *testing.T) {
	_, err := Named("resnet")
	require.EqualError(t, err, `unknown workload "resnet": want one of lenet5, resnet50, bert_base, vgg16, gpt2_small`)
}
