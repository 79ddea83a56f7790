# Patches llama.cpp's sources before they are compiled: CMAKE_PROJECT_llama_cpp_INCLUDE has this file included at the end
# of llama-cpp-python's project(). The patches are in patches/, and each says what it is for. Where they do not belong to
# the sources, none is applied and the build goes on with llama.cpp as it is. A build that has them says so among the
# features of the processor.
execute_process(
    COMMAND "${SLIPSTREAM_PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/llama_patches.py"
            "${CMAKE_CURRENT_SOURCE_DIR}/vendor/llama.cpp"
    RESULT_VARIABLE slipstream_result
    OUTPUT_VARIABLE slipstream_said
    ERROR_VARIABLE slipstream_said
    OUTPUT_STRIP_TRAILING_WHITESPACE
)
if(slipstream_result EQUAL 0)
    message(STATUS "Slipstream: ${slipstream_said}")
else()
    message(WARNING "Slipstream: ${slipstream_said}")
endif()
