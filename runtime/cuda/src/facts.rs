//! A GPU as its driver describes it.

use cudarc::driver::sys::CUdevice_attribute as Attribute;

use super::driver::{Gpu, OpenError};

/// A GPU as its driver describes it now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The vendor's name for it.
    pub name: String,
    /// Its compute capability, such as 9 and 0.
    pub capability: (u32, u32),
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// Their highest clock, in kHz.
    pub clock_khz: u32,
    /// The highest clock of its memory, in kHz.
    pub memory_clock_khz: u32,
    /// Width of its memory bus in bits.
    pub bus_bits: u32,
    /// Bytes of its memory: free, and in total.
    pub memory: [u64; 2],
}

impl Facts {
    /// The facts of the GPU of this number.
    ///
    /// # Errors
    /// [`OpenError`], which says which libraries were tried and where.
    pub fn of(ordinal: u32) -> Result<Facts, OpenError> {
        let gpu = Gpu::open(ordinal)?;
        let memory = gpu.free().map_err(OpenError::Driver)?;
        let facts = Facts {
            name: gpu.name.clone(),
            capability: (
                gpu.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                gpu.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
            ),
            multiprocessors: gpu.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            clock_khz: gpu.attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
            memory_clock_khz: gpu.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
            bus_bits: gpu.attribute(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
            memory,
        };
        // The device's context stays until the process ends, so that it need not be created again.
        std::mem::forget(gpu);
        Ok(facts)
    }
}
