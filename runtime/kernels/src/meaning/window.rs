//! Convolutions and pooling: the geometry of an image, a window and its positions.

use crate::spec::{Spec, SpecError, refuse};

/// One number for each of three spatial dimensions. Fewer dimensions are led by extents of 1.
pub type Spatial = [usize; 3];

/// A window that slides over an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// Extents of the image.
    pub image: Spatial,
    /// Number of positions of the window.
    pub positions: Spatial,
    /// Extents of the window.
    pub kernel: Spatial,
    /// Distances between positions.
    pub stride: Spatial,
    /// Distances between elements of the window.
    pub dilation: Spatial,
    /// Padding at the beginning of the image.
    pub before: [isize; 3],
    /// Padding at the end, as the attributes say; an average that includes padding counts it.
    pub after: [isize; 3],
}

fn spatial<T: Copy>(list: &[T], lead: T) -> [T; 3] {
    let mut all = [lead; 3];
    all[3 - list.len()..].copy_from_slice(list);
    all
}

impl SlidingWindow {
    /// From the attributes, for a known image and number of positions, all without batch and channels.
    pub fn new(
        spec: &Spec<'_>,
        image: &[usize],
        positions: &[usize],
        kernel: &[usize],
    ) -> Result<SlidingWindow, SpecError> {
        let rank = image.len();
        if !(1..=3).contains(&rank) || positions.len() != rank || kernel.len() != rank {
            return refuse(format!(
                "image {image:?}, positions {positions:?} and window {kernel:?}; expected one to three dimensions each"
            ));
        }
        // Two products of such numbers and their sum fit 64 bits.
        let list = |name: &str, length: usize, default: usize| -> Result<Vec<usize>, SpecError> {
            let Some(list) = spec.ints(name)? else { return Ok(vec![default; length]) };
            match list.iter().map(|&i| i32::try_from(i)).collect::<Result<Vec<_>, _>>() {
                Ok(list) if list.len() == length && list.iter().all(|&i| i >= 0) => {
                    Ok(list.into_iter().map(|i| i as usize).collect())
                }
                _ => refuse(format!(
                    "attribute `{name}` is {list:?}; expected {length} numbers, none negative or above {}",
                    i32::MAX
                )),
            }
        };
        let stride = list("strides", rank, 1)?;
        let dilation = list("dilations", rank, 1)?;
        if stride.contains(&0) || dilation.contains(&0) {
            return refuse("a stride or dilation is 0");
        }
        let auto = spec.string("auto_pad")?;
        let pads = list("pads", 2 * rank, 0)?;
        let transposed = spec.op.name().contains("ConvTranspose");
        let mut before = vec![0; rank];
        let mut after = vec![0; rank];
        for d in 0..rank {
            let reach = (kernel[d].max(1) - 1) * dilation[d] + 1;
            let total = (positions[d].max(1) - 1) * stride[d] + reach;
            let total = if transposed { total + list("output_padding", rank, 0)?[d] } else { total };
            let total = total as isize - image[d] as isize;
            let is_given = transposed && spec.says("output_shape");
            // If `output_shape` asks for it, ONNX puts the odd element behind the windows. Elements that no stride explains, and
            // those that `SAME_UPPER` and `SAME_LOWER` add, are placed differently in other runtimes.
            let is_open = total < 0 && (auto.starts_with("SAME") || -total >= stride[d] as isize);
            if transposed && (is_given || auto.starts_with("SAME")) && is_open {
                return refuse(format!(
                    "the result has {} elements more along spatial axis {d} than the windows reach, and where they lie \
                     is not defined; give `pads` and `output_padding`",
                    -total
                ));
            }
            let total = total.max(0);
            let half = total / 2;
            (before[d], after[d]) = match &*auto {
                "SAME_UPPER" => (half, total - half),
                "SAME_LOWER" => (total - half, half),
                // A transposed convolution of given extent puts the odd element on the other side by default.
                "VALID" | "NOTSET" | "" if is_given => (total - half, half),
                "VALID" => (0, 0),
                "NOTSET" | "" => (pads[d] as isize, pads[rank + d] as isize),
                other => {
                    return refuse(format!("attribute `auto_pad` is `{other}`; no such padding is known"));
                }
            };
        }
        Ok(SlidingWindow {
            image: spatial(image, 1),
            positions: spatial(positions, 1),
            kernel: spatial(kernel, 1),
            stride: spatial(&stride, 1),
            dilation: spatial(&dilation, 1),
            before: spatial(&before, 0),
            after: spatial(&after, 0),
        })
    }

    /// Number of elements of the image.
    pub fn image_len(&self) -> usize {
        self.image.iter().product()
    }

    /// Number of positions.
    pub fn positions_len(&self) -> usize {
        self.positions.iter().product()
    }

    /// Number of elements of the window.
    pub fn kernel_len(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Whether every position of the window is a single element, the one at the same position.
    pub fn is_pointwise(&self) -> bool {
        self.kernel == [1; 3]
            && self.stride == [1; 3]
            && self.before == [0; 3]
            && self.image == self.positions
    }

    /// The window that slides over the gradients of positions and computes the image's gradient, if the stride is 1 and the window is
    /// not empty. Its weights are reversed.
    pub fn turned(&self) -> Option<SlidingWindow> {
        if self.stride != [1; 3] || self.kernel.contains(&0) {
            return None;
        }
        let reach = |d: usize| ((self.kernel[d] - 1) * self.dilation[d]) as isize;
        Some(SlidingWindow {
            image: self.positions,
            positions: self.image,
            before: std::array::from_fn(|d| reach(d) - self.before[d]),
            after: [0; 3],
            ..*self
        })
    }
}
