package workload

import "fmt"

// convolution returns a layer of kernels of size x size, with an output of side x side.
func convolution(name string, in, out, size, side int, bias bool) Layer {
	l := Layer{
		Operations: int64(in*out*size*size) * int64(side*side),
		Parameters: []Parameter{{name + ".weight", []int{out, in, size, size}}},
	}
	if bias {
		l.Parameters = append(l.Parameters, Parameter{name + ".bias", []int{out}})
	}
	return l
}

// norm adds the parameters of a normalisation that follows.
func (l Layer) norm(name string, features int) Layer {
	l.Parameters = append(l.Parameters, Parameter{name + ".weight", []int{features}}, Parameter{name + ".bias", []int{features}})
	return l
}

// linear returns a fully connected layer with a bias, applied to each of a number of positions.
func linear(name string, in, out, positions int) Layer {
	return Layer{int64(in*out) * int64(positions), []Parameter{{name + ".weight", []int{out, in}}, {name + ".bias", []int{out}}}}
}

// lenet5 is the smallest: its gradients are 241 KiB.
func lenet5() Workload {
	return Workload{
		Name:   "lenet5",
		Source: "LeCun et al., Gradient-based learning applied to document recognition, 1998, with fully connected maps; 32x32 pixels",
		Layers: []Layer{
			convolution("conv1", 1, 6, 5, 28, true),
			convolution("conv2", 6, 16, 5, 10, true),
			linear("fc1", 400, 120, 1),
			linear("fc2", 120, 84, 1),
			linear("fc3", 84, 10, 1),
		},
	}
}

func resnet50() Workload {
	w := Workload{
		Name:   "resnet50",
		Source: "He et al., Deep residual learning for image recognition, 2015, with the strides of torchvision; 224x224 pixels",
		Layers: []Layer{convolution("conv1", 3, 64, 7, 112, false).norm("bn1", 64)},
	}
	in, side := 64, 56
	for stage, blocks := range []int{3, 4, 6, 3} {
		width := 64 << stage
		for block := range blocks {
			before := side // of the first convolution: the second has the stride
			if stage > 0 && block == 0 {
				side /= 2
			}
			name := fmt.Sprintf("layer%d.%d.", stage+1, block)
			w.Layers = append(w.Layers,
				convolution(name+"conv1", in, width, 1, before, false).norm(name+"bn1", width),
				convolution(name+"conv2", width, width, 3, side, false).norm(name+"bn2", width),
				convolution(name+"conv3", width, 4*width, 1, side, false).norm(name+"bn3", 4*width))

			if block == 0 {
				w.Layers = append(w.Layers,
					convolution(name+"downsample.0", in, 4*width, 1, side, false).norm(name+"downsample.1", 4*width))
			}
			in = 4 * width
		}
	}

	w.Layers = append(w.Layers, linear("fc", in, 1000, 1))
	return w
}

func vgg16() Workload {
	w := Workload{
		Name:   "vgg16",
		Source: "Simonyan and Zisserman, Very deep convolutional networks for large-scale image recognition, 2014, configuration D; 224x224 pixels",
	}
	in, side, number := 3, 224, 0
	for stage, convolutions := range []int{2, 2, 3, 3, 3} {
		width := min(64<<stage, 512)
		for range convolutions {
			w.Layers = append(w.Layers, convolution(fmt.Sprintf("features.%d", number), in, width, 3, side, true))
			in = width
			number += 2 // an activation follows
		}
		side /= 2
		number++ // a pooling follows
	}
	w.Layers = append(w.Layers,
		linear("classifier.0", in*side*side, 4096, 1),
		linear("classifier.3", 4096, 4096, 1),
		linear("classifier.6", 4096, 1000, 1))
	return w
}
