//! Pooling and its gradients.

use rayon::prelude::*;

use super::{Made, least};
use crate::kernel::{Io, Kernel};
use crate::meaning::{Rows, SlidingWindow};
use crate::spec::{Spec, SpecError, refuse};

/// The window of a pooling operator, from the extents of image and positions.
pub fn window(spec: &Spec<'_>, image: &[usize], positions: &[usize]) -> Result<SlidingWindow, SpecError> {
    let (Some(image), Some(positions)) = (image.get(2..), positions.get(2..)) else {
        return refuse("the operand has fewer than three dimensions");
    };
    let Some(kernel) = spec.ints("kernel_shape")? else {
        return refuse("attribute `kernel_shape` is missing");
    };
    let kernel: Vec<usize> = kernel.iter().map(|&k| k.max(0) as usize).collect();
    let w = SlidingWindow::new(spec, image, positions, &kernel)?;
    // ONNX's definition, its reference and runtimes pad these differently.
    let reach = |d: usize| (w.kernel[d].max(1) - 1) * w.dilation[d] + 1;
    let is_open = |d: usize| {
        w.kernel[d] > 1 && w.dilation[d] > 1
            || (w.positions[d].max(1) - 1) * w.stride[d] + reach(d) < w.image[d]
    };
    if spec.string("auto_pad")?.starts_with("SAME") && (0..3).any(is_open) {
        return refuse(
            "how `auto_pad` pads windows with gaps in or between them is not defined; give `pads`",
        );
    }
    Ok(w)
}

/// Refuses a result whose batch or channels differ from the operand's.
fn planes_agree(spec: &Spec<'_>, operand: &[usize], result: &[usize]) -> Result<(), SpecError> {
    spec.expect_result(0, spec.element(0)?)?;
    if operand.get(..2) == result.get(..2) {
        Ok(())
    } else {
        refuse(format!("operand {operand:?} and result {result:?} have different planes"))
    }
}

/// The elements of the image in the window along dimension `d`: the first, the distance, and their number.
fn met(w: &SlidingWindow, d: usize, position: usize) -> (usize, usize, usize) {
    let start = (position * w.stride[d]) as isize - w.before[d];
    let step = w.dilation[d];
    let skipped = if start >= 0 { 0 } else { ((-start) as usize).div_ceil(step) };
    let first = start + (skipped * step) as isize;
    let room = (w.image[d] as isize - first).max(0) as usize;
    let count = room.div_ceil(step).min(w.kernel[d].saturating_sub(skipped));
    (first.max(0) as usize, step, count)
}

/// Number of taps inside the image and its padding along dimension `d`.
fn counted(w: &SlidingWindow, d: usize, position: usize) -> usize {
    let start = (position * w.stride[d]) as isize - w.before[d];
    let end = w.image[d] as isize + w.after[d];
    (0..w.kernel[d]).filter(|t| start + ((t * w.dilation[d]) as isize) < end).count()
}

/// Calls `f` with each position and the elements in its window along each dimension.
fn each_position(w: &SlidingWindow, mut f: impl FnMut(usize, [(usize, usize, usize); 3])) {
    let [depths, rows, columns] = w.positions;
    for z in 0..depths {
        let in_depth = met(w, 0, z);
        for y in 0..rows {
            let in_rows = met(w, 1, y);
            for x in 0..columns {
                f((z * rows + y) * columns + x, [in_depth, in_rows, met(w, 2, x)]);
            }
        }
    }
}

/// Calls `f` with the index of each element in the window of one position.
#[inline]
fn each_element(w: &SlidingWindow, [z, y, x]: [(usize, usize, usize); 3], mut f: impl FnMut(usize)) {
    for a in 0..z.2 {
        for b in 0..y.2 {
            let row = ((z.0 + a * z.1) * w.image[1] + y.0 + b * y.1) * w.image[2] + x.0;
            for c in 0..x.2 {
                f(row + c * x.1);
            }
        }
    }
}

/// `MaxPool(X → Y, indices)`; indices count through the whole tensor.
pub fn max(spec: &Spec<'_>) -> Made {
    spec.expect_floats([0])?;
    let w = window(spec, &spec.dims(0)?, &spec.result_dims(0)?)?;
    planes_agree(spec, &spec.dims(0)?, &spec.result_dims(0)?)?;
    let wants = spec.wants(1);
    spec.expect_result_count(1, spec.result_dims(0)?.iter().product())?;
    if wants && spec.int("storage_order")? != 0 {
        return refuse("attribute `storage_order` is 1; this kernel counts in row-major order");
    }
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let x = io.get::<f32>(0);
        let (out, indices) = (io.take::<f32>(0), io.take::<i64>(1));
        let (plane, places) = (w.image_len(), w.positions_len().max(1));
        let run = |(i, out): (usize, &mut [f32]), mut indices: Option<&mut [i64]>| {
            let x = &x[i * plane..][..plane];
            each_position(&w, |position, met| {
                let mut best = (f32::NEG_INFINITY, None);
                each_element(&w, met, |at| {
                    let value = x[at];
                    if best.1.is_none() || value > best.0 || (value.is_nan() && !best.0.is_nan()) {
                        best = (value, Some(at));
                    }
                });
                out[position] = best.0;
                if let Some(indices) = &mut indices {
                    indices[position] = (i * plane + best.1.unwrap_or(0)) as i64;
                }
            });
        };
        let planes = out.par_chunks_mut(places).enumerate().with_min_len(least(places * w.kernel_len()));
        if wants {
            planes.zip(indices.par_chunks_mut(places)).for_each(|(out, i)| run(out, Some(i)))
        } else {
            planes.for_each(|out| run(out, None))
        }
    }))
}

/// `MaxPoolGrad(dY, indices → dX)`: dY added at the positions of the largest elements.
pub fn max_grad(spec: &Spec<'_>) -> Made {
    spec.expect_floats([0])?;
    spec.expect(1, lmsc_ir::ElementType::Int64)?;
    let (positions, image) = (spec.dims(0)?, spec.result_dims(0)?);
    if positions.len() < 2 || image.len() < 2 || positions[..2] != image[..2] {
        return refuse(format!("gradients {positions:?} and result {image:?} have different planes"));
    }
    spec.expect_dims(1, &positions)?;
    let (places, plane) = (Rows::from(&positions, 2).axis, Rows::from(&image, 2).axis);
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (dy, indices) = (io.get::<f32>(0), io.get::<i64>(1));
        let planes = io.take::<f32>(0).par_chunks_mut(plane.max(1)).enumerate();
        planes.with_min_len(least(plane)).for_each(|(i, dx)| {
            dx.fill(0.0);
            let at = i * places..(i + 1) * places;
            for (dy, index) in dy[at.clone()].iter().zip(&indices[at]) {
                // Indices are data: one outside of its plane is ignored.
                if let Some(dx) = usize::try_from(index - (i * plane) as i64).ok().and_then(|i| dx.get_mut(i))
                {
                    *dx += dy;
                }
            }
        });
    }))
}

/// Number of elements that the average at a position counts.
fn divisor(w: &SlidingWindow, with_padding: bool, position: usize, met: [(usize, usize, usize); 3]) -> f32 {
    if !with_padding {
        return (met[0].2 * met[1].2 * met[2].2) as f32;
    }
    let [_, rows, columns] = w.positions;
    let at = [position / (rows * columns), position / columns % rows, position % columns];
    (0..3).map(|d| counted(w, d, at[d])).product::<usize>() as f32
}

/// `AveragePool(X → Y)`.
pub fn average(spec: &Spec<'_>) -> Made {
    spec.expect_floats([0])?;
    let w = window(spec, &spec.dims(0)?, &spec.result_dims(0)?)?;
    planes_agree(spec, &spec.dims(0)?, &spec.result_dims(0)?)?;
    let with_padding = spec.flag("count_include_pad")?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let x = io.get::<f32>(0);
        let (plane, places) = (w.image_len(), w.positions_len().max(1));
        let planes = io.take::<f32>(0).par_chunks_mut(places).enumerate();
        planes.with_min_len(least(places * w.kernel_len())).for_each(|(i, out)| {
            let x = &x[i * plane..][..plane];
            each_position(&w, |position, met| {
                let mut sum = 0.0;
                each_element(&w, met, |at| sum += x[at]);
                out[position] = sum / divisor(&w, with_padding, position, met);
            });
        });
    }))
}

/// `AveragePoolGrad(dY → dX)`.
pub fn average_grad(spec: &Spec<'_>) -> Made {
    spec.expect_floats([0])?;
    let w = window(spec, &spec.result_dims(0)?, &spec.dims(0)?)?;
    planes_agree(spec, &spec.dims(0)?, &spec.result_dims(0)?)?;
    let with_padding = spec.flag("count_include_pad")?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let dy = io.get::<f32>(0);
        let (plane, places) = (w.image_len(), w.positions_len());
        let planes = io.take::<f32>(0).par_chunks_mut(plane.max(1)).enumerate();
        planes.with_min_len(least(places * w.kernel_len())).for_each(|(i, dx)| {
            dx.fill(0.0);
            let dy = &dy[i * places..][..places];
            each_position(&w, |position, met| {
                let part = dy[position] / divisor(&w, with_padding, position, met);
                each_element(&w, met, |at| dx[at] += part);
            });
        });
    }))
}

/// `GlobalAveragePool`, or `GlobalMaxPool`.
pub fn global(spec: &Spec<'_>, largest: bool) -> Made {
    spec.expect_floats([0])?;
    let dims = spec.dims(0)?;
    if dims.len() < 2 {
        return refuse("operand 0 has fewer than two dimensions");
    }
    let plane = Rows::from(&dims, 2).axis;
    spec.expect_float_result(0, dims[0] * dims[1])?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let x = io.get::<f32>(0);
        let planes = io.take::<f32>(0).par_iter_mut().enumerate();
        planes.with_min_len(least(plane)).for_each(|(i, out)| {
            let x = &x[i * plane..][..plane];
            *out = if largest {
                super::softmax::largest(x)
            } else {
                (super::softmax::sum(plane, |i| x[i]) / plane as f64) as f32
            };
        });
    }))
}
